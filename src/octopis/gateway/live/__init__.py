"""How the overlay is, again and again: one poller, and whoever looks at it."""
