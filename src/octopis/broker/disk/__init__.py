"""A live broker's disk: publications wait for it, and clients read from it."""
