"""What runs have left behind: read, measured, checked, written down."""
