"""The clients of a broker: their sessions, their requests, and what each may take."""
