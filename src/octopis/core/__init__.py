"""Everything without IO: what brokers know, decide and say; no clocks, threads, files, sockets."""
