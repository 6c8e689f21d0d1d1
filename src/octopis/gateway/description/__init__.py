"""What the gateway says of itself: OpenAPI, and the same as a page."""
