"""Identification-based routing (BID, Algorithm 2), the baseline.

The publisher's host matches once and writes the identifications (BIDs) of the matching hosts into
the notification. Each broker on the way only splits them by next hop; the broker whose own BID is
among them matches for its local clients and strips it.

Subscriptions under identification-based routing (BID): flooded from their host broker.

A host broker numbers its changes. Every broker takes each change in once, on first receipt, and
passes it to all neighbours but the sender; later copies are counted as duplicates and dropped. The
neighbour that brought a host's first change is the next hop to that host, for all of its
subscriptions: one BID, one tree, that of the lowest number.

When links were cut or brokers have lost their tables, changes may be missed, and a tree may lead
through a broker that has forgotten it. Then the host floods all that it has as a new *generation*,
which also makes a new tree. A broker's next hop has always heard of the same generation or a
newer one, and within a generation the tree is that of one flood; so next hops never form a loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import (
    Flooded,
    HostState,
    HostVersions,
    Message,
    NotificationMessage,
    Reason,
    Refresh,
    Subscription,
)
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.table import LOCAL, Entry, RoutingTable

_NO_CLUSTERS = ClusterBitVector(0)  # the overlay is used as one graph, without clusters
_NOTHING_HEARD = (0, 0, crc32(b""))


@dataclass(slots=True)
class _Host:
    """What a broker knows of a host: how far it has heard, and the next hop to it."""

    name: BrokerId
    generation: int = 0
    sequence: int = 0
    next_hop: BrokerId | None = None
    subscriptions: dict[str, Subscription] = field(default_factory=dict)

    @property
    def heard(self) -> tuple[int, int]:
        return self.generation, self.sequence

    def state(self) -> tuple[int, int, int]:
        # A host that was restarted numbers anew, so numbers alone may agree by chance.
        texts = sorted(f"{s.id}\0{s.epoch}\0{s.filter}" for s in self.subscriptions.values())
        contents = "\0\0".join(texts).encode(errors="surrogatepass")
        return self.generation, self.sequence, crc32(contents)


class Flooding:
    """Floods the subscriptions of local clients and keeps the routing table."""

    def __init__(
        self,
        broker: BrokerId,
        neighbours: tuple[BrokerId, ...],
        table: RoutingTable,
        outbox: Outbox,
        moved_away: Callable[[str], None],
    ) -> None:
        self._broker = broker
        self._neighbours = neighbours
        self._table = table
        self._outbox = outbox
        self._moved_away = moved_away
        self._own = _Host(broker)
        self._hosts: dict[BrokerId, _Host] = {broker: self._own}
        self._holders: dict[str, dict[BrokerId, _Host]] = {}
        self._wished: dict[BrokerId, int] = {}  # generations known to be too old somewhere

    def next_hop(self, host: BrokerId) -> BrokerId | None:
        """Return the neighbour on the way to `host`, if one is known."""
        known = self._hosts.get(host)
        return known.next_hop if known is not None else None

    def subscribe(self, subscription: Subscription) -> None:
        """Take in a subscription of a local client."""
        self._change(added=subscription)

    def unsubscribe(self, subscription: str) -> None:
        """Take back a subscription of a local client."""
        self._change(removed=subscription)

    def _change(self, added: Subscription | None = None, removed: str | None = None) -> None:
        self._own.sequence += 1
        change = Flooded(self._broker, *self._own.heard, added=added, removed=removed)
        self._apply(self._own, change)
        self._flood(change, Reason.SUBSCRIPTION)

    def receive(self, sender: BrokerId, message: Message) -> None:
        """Take in what a neighbour says about subscriptions."""
        match message:
            case Flooded():
                self._receive_change(sender, message)
            case HostState():
                self._receive_state(sender, message)
            case HostVersions():
                self._compare(message)
            case Refresh():
                self._refresh(message, sender)
            case _:
                raise AssertionError(f"{message} is not of this protocol")

    def link_up(self, neighbour: BrokerId) -> None:
        """Tell a neighbour how far this broker has heard of every host."""
        known = {name: host.state() for name, host in self._hosts.items()}
        self._outbox.send(neighbour, HostVersions(known), Reason.SYNC)
        for host, generation in self._wished.items():
            if self.next_hop(host) in (neighbour, None):
                self._outbox.send(neighbour, Refresh(host, generation), Reason.SYNC)

    def _receive_change(self, sender: BrokerId, change: Flooded) -> None:
        host = self._host(change.host)
        if (change.generation, change.sequence) <= host.heard:
            self._outbox.counters.duplicates += 1
        elif change.host == self._broker:
            self._renew(change.generation)  # it is from before a restart
        elif (change.generation, change.sequence) != (host.generation, host.sequence + 1):
            self._outbox.send(sender, Refresh(change.host, change.generation), Reason.SYNC)
        else:
            host.sequence = change.sequence
            host.next_hop = host.next_hop or sender
            self._flood(change, Reason.SUBSCRIPTION, sender)
            self._apply(host, change)

    def _receive_state(self, sender: BrokerId, state: HostState) -> None:
        host = self._host(state.host)
        if state.generation <= host.generation:
            self._outbox.counters.duplicates += 1
        elif state.host == self._broker:
            self._renew(state.generation)
        else:
            self._wished.pop(state.host, None)
            host.generation, host.sequence = state.generation, state.sequence
            host.next_hop = sender
            self._flood(state, Reason.SYNC, sender)
            for gone in list(host.subscriptions):
                self._remove(host, gone)
            for subscription in state.subscriptions:
                self._add(host, subscription)

    def _compare(self, hello: HostVersions) -> None:
        """Have everything flooded anew that a neighbour has heard less of, or otherwise."""
        for name, host in list(self._hosts.items()):
            theirs, ours = hello.known.get(name, _NOTHING_HEARD), host.state()
            if theirs[:2] < ours[:2] or (theirs[:2] == ours[:2] and theirs != ours):
                self._refresh(Refresh(name, host.generation))
        generation, sequence, _ = hello.known.get(self._broker, _NOTHING_HEARD)
        if (generation, sequence) > self._own.heard:
            self._renew(generation)

    def _refresh(self, wish: Refresh, sender: BrokerId | None = None) -> None:
        """Pass a wish on towards the host, or fulfil it.

        A broker that has lost its table knows no way to the host: there, wishes are flooded.
        """
        if wish.host == self._broker:
            if wish.generation >= self._own.generation:
                self._renew(wish.generation)
            return
        host = self._hosts.get(wish.host)
        if host is not None and host.generation > wish.generation:
            return  # a newer flood is on its way already, or comes past here later
        if self._wished.get(wish.host, -1) < wish.generation:
            self._wished[wish.host] = wish.generation
            way = self.next_hop(wish.host)
            if way is None:
                self._flood(wish, Reason.SYNC, sender)
            elif way in self._outbox.up:
                self._outbox.send(way, wish, Reason.SYNC)

    def _renew(self, generation: int) -> None:
        """Flood all own subscriptions as a generation after `generation`."""
        self._own.generation = max(generation, self._own.generation) + 1
        subscriptions = tuple(self._own.subscriptions.values())
        self._flood(HostState(self._broker, *self._own.heard, subscriptions), Reason.SYNC)

    def _host(self, name: BrokerId) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(name)
        return host

    def _apply(self, host: _Host, change: Flooded) -> None:
        if change.added is not None:
            self._add(host, change.added)
        if change.removed is not None:
            self._remove(host, change.removed)

    def _add(self, host: _Host, subscription: Subscription) -> None:
        host.subscriptions[subscription.id] = subscription
        self._holders.setdefault(subscription.id, {})[host.name] = host
        self._choose(subscription.id)

    def _remove(self, host: _Host, identity: str) -> None:
        if host.subscriptions.pop(identity, None) is not None:
            del self._holders[identity][host.name]
            self._choose(identity)

    def _choose(self, identity: str) -> None:
        """Put the newest news of a subscription into the table."""
        holders = self._holders[identity]
        if not holders:
            del self._holders[identity]
            self._table.remove(identity)
            return
        newest = max(holders.values(), key=lambda h: (h.subscriptions[identity].epoch, h.name))
        subscription = newest.subscriptions[identity]
        last_hop = LOCAL if newest is self._own else newest.next_hop
        self._table.put(Entry(subscription, last_hop, _NO_CLUSTERS, newest.name))
        if newest is not self._own and self._broker in holders:
            self._moved_away(identity)
            self._change(removed=identity)

    def _flood(
        self, message: Flooded | HostState | Refresh, reason: Reason, sender: BrokerId | None = None
    ) -> None:
        for neighbour in self._neighbours:
            if neighbour != sender and neighbour in self._outbox.up:
                self._outbox.send(neighbour, message, reason)


class IdentifiedRouting:
    """BID."""

    def __init__(
        self,
        broker: BrokerId,
        table: RoutingTable,
        outbox: Outbox,
        clients: LocalClients,
        flooding: Flooding,
    ) -> None:
        self._broker = broker
        self._table = table
        self._outbox = outbox
        self._clients = clients
        self._flooding = flooding

    def route(self, batch: Sequence[NotificationMessage], sender: BrokerId | None) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        if sender is None:
            attributes = [routed.notification.attributes for routed in batch]
            targets = self._table.destinations(attributes)
            batch = [
                NotificationMessage(routed.notification, bids=bids)
                for routed, bids in zip(batch, targets, strict=True)
            ]
            arrived: Sequence[NotificationMessage] = batch
        else:
            arrived = [routed for routed in batch if self._broker in routed.bids]
        if arrived:
            attributes = [routed.notification.attributes for routed in arrived]
            self._clients.deliver(arrived, self._table.local_matches(attributes))
        for routed in batch:
            self._split(routed)

    def _split(self, routed: NotificationMessage) -> None:
        by_next_hop: dict[BrokerId, list[BrokerId]] = {}
        for bid in routed.bids:
            if bid == self._broker:
                continue
            next_hop = self._flooding.next_hop(bid)
            if next_hop is None:
                self._outbox.counters.lost_without_route += 1
            else:
                by_next_hop.setdefault(next_hop, []).append(bid)
        for next_hop, bids in by_next_hop.items():
            copy = NotificationMessage(routed.notification, bids=tuple(bids))
            self._outbox.send(next_hop, copy, Reason.MATCH)
