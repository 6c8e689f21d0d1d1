"""Which host has which subscriptions, where hosts number their own changes (BID and TNR).

A subscription that moves is for a while said to be at two hosts: the table has the newest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import Stored, Subscription
from octopis.core.routing.outbox import Outbox
from octopis.core.routing.table import LOCAL, Entry, RoutingTable

_NO_CLUSTERS = ClusterBitVector(0)  # neither algorithm asks for the host cluster

Version = tuple[int, int]
"""Generation and sequence: how far a host's changes have been heard."""


@dataclass(slots=True)
class Host:
    """What a broker knows of a host: how far it has heard, and its subscriptions."""

    name: BrokerId
    generation: int = 0
    sequence: int = 0
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    durables: dict[str, Subscription] = field(default_factory=dict)
    """Those of them that are durable."""

    @property
    def heard(self) -> Version:
        """How far the host's changes have been heard."""
        return self.generation, self.sequence


class Hosts:
    """All hosts that a broker has heard of, and the routing table that follows from them.

    `way_to` says what the table has as last hop towards a host; `moved_away` is called with own
    subscriptions that have gone on to another host, after the table knows it.
    """

    def __init__(
        self,
        broker: BrokerId,
        table: RoutingTable,
        outbox: Outbox,
        way_to: Callable[[BrokerId], BrokerId | None],
        moved_away: Callable[[str, int], None],
    ) -> None:
        self.own = Host(broker)
        self._table = table
        self._outbox = outbox
        self._way_to = way_to
        self._moved_away = moved_away
        self.on_durable: Callable[[Host], None] = lambda _: None
        """Is told of hosts whose durable subscriptions have changed."""

        self._hosts: dict[BrokerId, Host] = {broker: self.own}
        self._holders: dict[str, dict[BrokerId, Host]] = {}

    def __getitem__(self, name: BrokerId) -> Host:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = Host(name)
        return host

    def __iter__(self) -> Iterator[Host]:
        return iter(list(self._hosts.values()))

    def get(self, name: BrokerId) -> Host | None:
        """Return what is known of a host, if anything was heard of it."""
        return self._hosts.get(name)

    def add(self, host: Host, subscription: Subscription, now_ns: int) -> None:
        """Take in that a host has a subscription."""
        host.subscriptions[subscription.id] = subscription
        if subscription.durable:
            host.durables[subscription.id] = subscription
            self.on_durable(host)
        self._holders.setdefault(subscription.id, {})[host.name] = host
        self._choose(subscription.id, now_ns)

    def remove(self, host: Host, identity: str, now_ns: int) -> None:
        """Take in that a host has a subscription no more."""
        if host.subscriptions.pop(identity, None) is not None:
            if host.durables.pop(identity, None) is not None:
                self.on_durable(host)
            del self._holders[identity][host.name]
            self._choose(identity, now_ns)

    def _choose(self, identity: str, now_ns: int) -> None:
        """Put the newest news of a subscription into the table."""
        holders = self._holders[identity]
        if not holders:
            del self._holders[identity]
            self._table.remove(identity)
            return
        newest = max(holders.values(), key=lambda h: (h.subscriptions[identity].epoch, h.name))
        subscription = newest.subscriptions[identity]
        last_hop = LOCAL if newest is self.own else self._way_to(newest.name)
        if self._table.put(Entry(subscription, last_hop, _NO_CLUSTERS, newest.name)):
            self._outbox.add(Stored(identity, newest.name))
        if newest is not self.own and self.own.name in holders:
            self._moved_away(identity, now_ns)
