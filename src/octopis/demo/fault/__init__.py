"""The last scene of the demonstration: a broker on the way is killed, and nothing stops."""
