"""Who uses the gateway: a client of the overlay for each, and how they log in."""
