"""`octopis bench kills`: what others notice when brokers die."""
