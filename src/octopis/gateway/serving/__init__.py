"""The server: HTTP on connections, their limits, and the event loop that it all runs on."""
