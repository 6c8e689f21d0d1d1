"""`octopis bench matching` and `routing`: the core on one processor, without sockets or files."""
