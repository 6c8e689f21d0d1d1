"""`/ws`: what is said on a WebSocket, what it is sent, and how it is read."""
