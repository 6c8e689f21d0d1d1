"""The broker's own clients and their subscriptions."""

from collections.abc import Sequence

from octopis.routing.messages import Routed
from octopis.routing.outbox import Outbox


class LocalClients:
    """Which client holds which subscription, and delivery to them."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._owners: dict[str, str] = {}
        self._subscriptions: dict[str, dict[str, None]] = {}

    def owner(self, subscription: str) -> str | None:
        """Return the client that holds a subscription here, if one does."""
        return self._owners.get(subscription)

    def subscriptions(self, client: str) -> list[str]:
        """Return a client's subscriptions, oldest first."""
        return list(self._subscriptions.get(client, {}))

    def hold(self, client: str, subscription: str) -> None:
        """Note that a client holds a subscription."""
        self._owners[subscription] = client
        self._subscriptions.setdefault(client, {})[subscription] = None

    def release(self, subscription: str) -> None:
        """Forget a subscription."""
        client = self._owners.pop(subscription)
        held = self._subscriptions[client]
        del held[subscription]
        if not held:
            del self._subscriptions[client]

    def deliver(self, batch: Sequence[Routed], matches: list[list[str]]) -> None:
        """Deliver each notification once to every client with a matching subscription."""
        owners = self._owners
        for routed, subscriptions in zip(batch, matches, strict=True):
            if not subscriptions:
                continue
            clients = list(map(owners.__getitem__, subscriptions))
            if clients.count(clients[0]) == len(clients):  # mostly so, and quick
                self._outbox.deliver(clients[0], routed.notification, subscriptions)
                continue
            by_client: dict[str, list[str]] = {}
            for client, subscription in zip(clients, subscriptions, strict=True):
                by_client.setdefault(client, []).append(subscription)
            for client, held in by_client.items():
                self._outbox.deliver(client, routed.notification, held)
