"""`octopis bench durable` and `durable-kills`: what a disk costs, and that it keeps its promise."""
