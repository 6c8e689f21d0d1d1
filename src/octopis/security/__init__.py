"""Who somebody is, what they may see and say, and how that is proved and written down."""
