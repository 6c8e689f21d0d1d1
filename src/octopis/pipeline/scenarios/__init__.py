"""From quotes to a scenario, and who must get what."""
