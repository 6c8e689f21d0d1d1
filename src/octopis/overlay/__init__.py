"""Many brokers: how they are configured, started, watched, asked and played to."""
