"""The paper's experiments: run, measured, set beside what the paper reports, and shown."""
