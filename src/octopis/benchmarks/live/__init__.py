"""`octopis bench broker`, `metrics` and `security`: a broker and its clients over loopback."""
