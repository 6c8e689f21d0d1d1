"""The demonstration: one scenario through real brokers under each algorithm, side by side."""
