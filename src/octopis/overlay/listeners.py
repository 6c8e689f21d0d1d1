"""The sockets of an overlay's brokers, and where they listen.

Without security a broker has one, for clients and neighbours. With it there is another for
neighbours, so that no crowd of clients keeps them out.
"""

from collections.abc import Iterable
from socket import socket
from typing import NamedTuple

from octopis.core.model import BrokerId
from octopis.errors import OperationFailed
from octopis.overlay.deployment import Addresses, address_of, open_listeners


class Places(NamedTuple):
    """Where brokers listen: for all, or under security for clients, and for neighbours."""

    clients: Addresses
    links: Addresses

    def of(self, brokers: Iterable[BrokerId]) -> "Places":
        """Return those of some brokers."""
        clients, links = ({b: each[b] for b in brokers if b in each} for each in self)
        return Places(clients, links)


class Listeners(NamedTuple):
    """The sockets of brokers: for all, or under security for clients, and one for neighbours."""

    clients: dict[BrokerId, socket]
    links: dict[BrokerId, socket]

    @classmethod
    def open(cls, clients: Addresses, links: Addresses) -> "Listeners":
        """Open all of them, or raise OperationFailed and leave none."""
        found = cls(open_listeners(clients), {})
        try:
            found.links.update(open_listeners(links))
        except OperationFailed:
            found.close(clients)
            raise
        return found

    @property
    def addresses(self) -> Places:
        """Where they listen."""
        clients, links = (
            {broker: address_of(each) for broker, each in sockets.items()} for sockets in self
        )
        return Places(clients, links)

    def of(self, brokers: Iterable[BrokerId]) -> list[socket]:
        """Return all sockets of some brokers."""
        return [each[broker] for broker in brokers for each in self if broker in each]

    def close(self, brokers: Iterable[BrokerId]) -> None:
        """Close those of some brokers."""
        for each in self.of(brokers):
            each.close()
