"""From rows to a scenario, and who must get what."""
