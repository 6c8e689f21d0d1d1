"""`octopis bench pipeline` and `streaming-kills`: the work on Spark."""
