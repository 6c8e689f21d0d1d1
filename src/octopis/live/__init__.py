"""Sockets and the wall clock: brokers and clients that run."""
