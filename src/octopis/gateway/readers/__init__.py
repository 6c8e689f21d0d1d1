"""What readers get: subscriptions that they share, and what waits for each of them."""
