"""One live broker: the routing core, driven by sockets and the wall clock."""
