"""What `octopis bench` measures. Figures go to docs/results.md with the machine they are from."""
