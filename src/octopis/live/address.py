"""Where brokers listen."""

from ipaddress import ip_address
from typing import NamedTuple


class Address(NamedTuple):
    """Where a broker listens. Port 0 takes any that is free."""

    host: str = "127.0.0.1"
    port: int = 0

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
