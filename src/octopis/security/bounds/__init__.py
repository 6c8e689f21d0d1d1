"""How much strangers may have and try: connections by address, handshakes, failed logins."""
