"""The security folder of an overlay from the shell: made, renewed, shown."""
