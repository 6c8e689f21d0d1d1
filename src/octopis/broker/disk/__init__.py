"""What a live broker has to do with its disk: publications wait for it, and clients read from it."""
