"""HTTP, WebSocket, server-sent events and CloudEvents for a live overlay, and its page."""
