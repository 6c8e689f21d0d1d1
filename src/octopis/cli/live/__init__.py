"""Live overlays from the shell: start and watch them, publish, subscribe."""
