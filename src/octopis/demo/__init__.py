"""The demonstration: one scenario through real brokers, under each algorithm, and what came of it."""
