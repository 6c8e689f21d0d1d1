"""Who is let in by a broker whose overlay has security: TLS, logins, and when these end."""
