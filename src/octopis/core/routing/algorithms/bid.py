"""Identification-based routing (BID, Algorithm 2), the baseline: floods, trees and splitting.

Subscriptions are flooded from their host broker, which numbers its changes. Every broker takes each
change in once, on first receipt, and passes it to all neighbours but the sender; later copies are
counted as duplicates and dropped. The neighbour that brought a host's first change is the next hop
to that host, for all of its subscriptions: one BID, one tree, that of the lowest number.

The publisher's host matches once and writes the identifications (BIDs) of the matching hosts into
the notification, as bits. Each broker on the way only splits them by next hop; the broker whose own
bit is among them matches for its local clients and strips it.

When links were cut or brokers have lost their tables, changes may be missed, and a tree may lead
through a broker that has forgotten it. Then the host floods all that it has as a new *generation*,
which also makes a new tree. A broker's next hop has always heard of the same generation or a
newer one, and within a generation the tree is that of one flood; so next hops never form a loop.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar
from zlib import crc32

from octopis.core.model import BrokerId
from octopis.core.routing.algorithms.hosts import Host, Hosts
from octopis.core.routing.link_status import LinkStatusTable
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
from octopis.core.routing.table import RoutingTable

Way = TypeVar("Way")

_NOTHING_HEARD = (0, 0, crc32(b""))


def _state(host: Host) -> tuple[int, int, int]:
    """Return how far a host was heard, with a checksum over what it has.

    A host that was restarted numbers anew, so numbers alone may agree by chance.
    """
    texts = sorted(f"{s.id}\0{s.epoch}\0{s.owner}\0{s.filter}" for s in host.subscriptions.values())
    contents = "\0\0".join(texts).encode(errors="surrogatepass")
    return *host.heard, crc32(contents)


def forwards(*, is_first: bool, is_way_back: bool) -> bool:
    """Tell whether what is flooded goes onto a link: on first receipt, but not where it came from.

    `is_first`: this broker has not had it before; `is_way_back`: it came over this link.
    """
    return is_first and not is_way_back


class Trees(Generic[Way]):
    """The trees of all hosts at one broker: which hosts (as bits) lie behind which way."""

    __slots__ = ("behind", "known")

    def __init__(self, ways: Iterable[Way]) -> None:
        self.behind = dict.fromkeys(ways, 0)
        self.known = 0
        """Hosts to which a way is known."""

    def first_heard(self, host: int, way: Way) -> None:
        """Let the way that first brought news of a host lead to it; later ones change nothing."""
        if not self.known & host:
            self.known |= host
            self.behind[way] |= host

    def renew(self, host: int, way: Way) -> None:
        """Let a host's new flood lead to it another way."""
        for each in self.behind:
            self.behind[each] &= ~host
        self.known &= ~host
        self.first_heard(host, way)

    def way_to(self, host: int) -> Way | None:
        """Return the way to a host, if one is known."""
        return next((way for way, behind in self.behind.items() if behind & host), None)

    def split(self, bids: int) -> list[tuple[Way, int]]:
        """Return the ways that lead to any of these hosts, each with those that lie behind it."""
        return [(way, part) for way, behind in self.behind.items() if (part := bids & behind)]


class Flooding:
    """Floods the subscriptions of local clients and keeps the routing table and the trees."""

    speaks: tuple[type, ...] = (Flooded, HostState, HostVersions, Refresh)

    def __init__(  # noqa: PLR0913, PLR0917 - one call, in strategy.py
        self,
        broker: BrokerId,
        links: LinkStatusTable,
        table: RoutingTable,
        outbox: Outbox,
        moved_away: Callable[[str], None],
        unheard: set[BrokerId],
        bit_of: Callable[[BrokerId], int],
    ) -> None:
        self._broker = broker
        self._links = links
        self._outbox = outbox
        self._release = moved_away
        self._hosts = Hosts(broker, table, outbox, self.next_hop, self._moved_away)
        self._own = self._hosts.own
        self._wished: dict[BrokerId, int] = {}  # generations known to be too old somewhere
        self._silent = unheard
        self._awaited: dict[BrokerId, int] = {}
        self._bit_of = bit_of
        self.trees: Trees[BrokerId] = Trees(links)

    @property
    def unheard(self) -> set[BrokerId]:
        """Silent neighbours, and hosts whose flood neighbours spoke of and that has not come."""
        return self._silent | {
            name for name, least in self._awaited.items() if self._hosts[name].generation < least
        }

    def next_hop(self, host: BrokerId) -> BrokerId | None:
        """Return the neighbour on the way to `host`, if one is known."""
        return self.trees.way_to(self._bit_of(host))

    def subscribe(self, subscription: Subscription, now_ns: int) -> None:
        """Take in a subscription of a local client."""
        self._change(now_ns, added=subscription)

    def unsubscribe(self, subscription: str, now_ns: int) -> None:
        """Take back a subscription of a local client."""
        self._change(now_ns, removed=subscription)

    def _change(
        self, now_ns: int, added: Subscription | None = None, removed: str | None = None
    ) -> None:
        self._own.sequence += 1
        change = Flooded(self._broker, *self._own.heard, added=added, removed=removed)
        self._apply(self._own, change, now_ns)
        self._flood(change, Reason.SUBSCRIPTION, now_ns)

    def receive(self, sender: BrokerId, message: Message, now_ns: int) -> None:
        """Take in what a neighbour says about subscriptions."""
        match message:
            case Flooded():
                self._receive_change(sender, message, now_ns)
            case HostState():
                self._receive_state(sender, message, now_ns)
            case HostVersions():
                self._compare(sender, message, now_ns)
            case Refresh():
                self._refresh(message, now_ns, sender)
            case _:
                raise AssertionError(f"{message} is not of this protocol")

    def link_up(self, neighbour: BrokerId, now_ns: int) -> None:
        """Tell a neighbour how far this broker has heard of every host."""
        known = {host.name: _state(host) for host in self._hosts}
        self._outbox.send(neighbour, HostVersions(known), Reason.SYNC, now_ns)
        for host, generation in self._wished.items():
            if self.next_hop(host) in (neighbour, None):
                self._outbox.send(neighbour, Refresh(host, generation), Reason.SYNC, now_ns)

    def ways(self, host: BrokerId, sender: BrokerId | None) -> list[BrokerId]:  # noqa: ARG002
        """Return the links on which changes of a host go on from here that came from `sender`."""
        return [
            link
            for link, status in self._links.items()
            if status.is_up and forwards(is_first=True, is_way_back=link == sender)
        ]

    @property
    def version(self) -> tuple[int, int]:
        """How the own changes so far are numbered."""
        return self._own.heard

    def knows(self, host: BrokerId, version: tuple[int, int]) -> bool:
        """Tell whether the changes of `host` up to a version have been heard."""
        return self._hosts[host].heard >= version

    def _receive_change(self, sender: BrokerId, change: Flooded, now_ns: int) -> None:
        host = self._hosts[change.host]
        if (change.generation, change.sequence) <= host.heard:
            self._outbox.counters.duplicates += 1
        elif change.host == self._broker:
            self._renew(change.generation, now_ns)  # it is from before a restart
        elif (change.generation, change.sequence) != (host.generation, host.sequence + 1):
            wish = Refresh(change.host, change.generation)
            self._outbox.send(sender, wish, Reason.SYNC, now_ns)
        else:
            host.sequence = change.sequence
            self.trees.first_heard(self._bit_of(change.host), sender)
            self._flood(change, Reason.SUBSCRIPTION, now_ns, sender)
            self._apply(host, change, now_ns)

    def _receive_state(self, sender: BrokerId, state: HostState, now_ns: int) -> None:
        host = self._hosts[state.host]
        if state.generation <= host.generation:
            self._outbox.counters.duplicates += 1
        elif state.host == self._broker:
            self._renew(state.generation, now_ns)
        else:
            self._wished.pop(state.host, None)
            host.generation, host.sequence = state.generation, state.sequence
            self.trees.renew(self._bit_of(state.host), sender)
            self._flood(state, Reason.SYNC, now_ns, sender)
            for gone in list(host.subscriptions):
                self._hosts.remove(host, gone, now_ns)
            for subscription in state.subscriptions:
                self._hosts.add(host, subscription, now_ns)

    def _compare(self, sender: BrokerId, versions: HostVersions, now_ns: int) -> None:
        """Have everything flooded anew that a neighbour has heard less of, or otherwise."""
        for host in self._hosts:
            theirs, ours = versions.known.get(host.name, _NOTHING_HEARD), _state(host)
            if theirs[:2] < ours[:2] or (theirs[:2] == ours[:2] and theirs != ours):
                self._refresh(Refresh(host.name, host.generation), now_ns)
        generation, sequence, _ = versions.known.get(self._broker, _NOTHING_HEARD)
        if (generation, sequence) > self._own.heard:
            self._renew(generation, now_ns)
        if sender in self._silent:  # its first word since this broker has started
            self._silent.discard(sender)
            for name, (generation, sequence, _) in versions.known.items():
                if name != self._broker and (generation, sequence) != (0, 0):
                    self._awaited[name] = max(1, generation, self._awaited.get(name, 0))

    def _refresh(self, wish: Refresh, now_ns: int, sender: BrokerId | None = None) -> None:
        """Pass a wish on towards the host, or fulfil it.

        A broker that has lost its table knows no way to the host: there, wishes are flooded.
        """
        if wish.host == self._broker:
            if wish.generation >= self._own.generation:
                self._renew(wish.generation, now_ns)
            return
        host = self._hosts.get(wish.host)
        if host is not None and host.generation > wish.generation:
            return  # a newer flood is on its way already, or comes past here later
        if self._wished.get(wish.host, -1) < wish.generation:
            self._wished[wish.host] = wish.generation
            way = self.next_hop(wish.host)
            if way is None:
                self._flood(wish, Reason.SYNC, now_ns, sender)
            elif self._links[way].is_up:
                self._outbox.send(way, wish, Reason.SYNC, now_ns)

    def _renew(self, generation: int, now_ns: int) -> None:
        """Flood all own subscriptions as a generation after `generation`."""
        self._own.generation = max(generation, self._own.generation) + 1
        subscriptions = tuple(self._own.subscriptions.values())
        state = HostState(self._broker, *self._own.heard, subscriptions)
        self._flood(state, Reason.SYNC, now_ns)

    def _apply(self, host: Host, change: Flooded, now_ns: int) -> None:
        if change.added is not None:
            self._hosts.add(host, change.added, now_ns)
        if change.removed is not None:
            self._hosts.remove(host, change.removed, now_ns)

    def _moved_away(self, identity: str, now_ns: int) -> None:
        self._release(identity)
        self._change(now_ns, removed=identity)

    def _flood(
        self,
        message: Flooded | HostState | Refresh,
        reason: Reason,
        now_ns: int,
        sender: BrokerId | None = None,
    ) -> None:
        for neighbour in self.ways(self._broker, sender):
            self._outbox.send(neighbour, message, reason, now_ns)


class IdentifiedRouting:
    """Matches at the publisher's host and at the targets; on the way it only splits."""

    def __init__(
        self,
        own_bit: int,
        table: RoutingTable,
        outbox: Outbox,
        clients: LocalClients,
        trees: Trees[BrokerId],
    ) -> None:
        self._own_bit = own_bit
        self._table = table
        self._outbox = outbox
        self._clients = clients
        self._trees = trees

    def route(
        self, batch: Sequence[NotificationMessage], sender: BrokerId | None, now_ns: int
    ) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        if sender is None:
            attributes = [message.notification.attributes for message in batch]
            batch = [
                NotificationMessage(message.notification, targets=hosts)
                for message, hosts in zip(batch, self._table.reached(attributes), strict=True)
            ]
            arrived: Sequence[NotificationMessage] = batch
        else:
            arrived = [message for message in batch if message.targets & self._own_bit]
        if arrived:
            attributes = [message.notification.attributes for message in arrived]
            self._clients.deliver(arrived, self._table.local_matches(attributes))
        for message in batch:
            bids = message.targets & ~self._own_bit
            self._outbox.counters.lost_without_route += (bids & ~self._trees.known).bit_count()
            for way, part in self._trees.split(bids):
                copy = NotificationMessage(message.notification, targets=part)
                self._outbox.send(way, copy, Reason.MATCH, now_ns)
