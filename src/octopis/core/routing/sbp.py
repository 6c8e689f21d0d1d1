"""The two-step subscription broadcast (SBP, Algorithm 1), kept up to date over every link.

    step one    aCOL   a primary subscription goes through its host cluster, which is a tree
    step two    iCOL   every broker of the host cluster gives a secondary copy to its region

An entry is primary where CBV_s names the holder's own cluster, secondary elsewhere; a secondary
one is stored and sent nowhere.

Paper deviation: Algorithm 1 keeps a `state` in the message, sets it to SECONDARY in a loop and
never back, so a primary neighbour after a secondary one would get the wrong state. Here the
state is derived from CBV_s, and the message is the same for everybody.

One rule covers new links, cut links and restarts: what a broker must tell a neighbour follows
from its own table alone (`_told`), and the neighbour keeps what it was told in `_heard`, link by
link. A change is told as a difference; a link that comes up starts with the whole (TableSnapshot).
So both ends agree as soon as the link has carried everything, whatever happened before.
"""

from collections.abc import Callable

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import (
    Message,
    Reason,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.routing.outbox import Outbox
from octopis.core.routing.table import LOCAL, Entry, RoutingTable
from octopis.core.topology import SCOT, LinkKind


class TwoStepBroadcast:
    """Spreads the subscriptions of local clients and keeps the routing table."""

    def __init__(
        self,
        broker: BrokerId,
        scot: SCOT,
        table: RoutingTable,
        outbox: Outbox,
        moved_away: Callable[[str], None],
    ) -> None:
        self._broker = broker
        self._kinds = {other: scot.link_kind(broker, other) for other in scot.neighbours(broker)}
        self._table = table
        self._outbox = outbox
        self._moved_away = moved_away
        self._own_bit = ClusterBitVector.of([broker.cluster])
        self._heard: dict[BrokerId | None, dict[str, Entry]] = {LOCAL: {}}
        for neighbour in self._kinds:
            self._heard[neighbour] = {}

    def subscribe(self, subscription: Subscription) -> None:
        """Take in a subscription of a local client."""
        self._hear(LOCAL, Subscribe(subscription, self._own_bit, self._broker))

    def unsubscribe(self, subscription: str) -> None:
        """Take back a subscription of a local client."""
        self._unhear(LOCAL, subscription)

    def receive(self, sender: BrokerId, message: Message) -> None:
        """Take in what a neighbour says about subscriptions."""
        if isinstance(message, Subscribe):
            self._hear(sender, message)
        elif isinstance(message, Unsubscribe):
            self._unhear(sender, message.id)
        else:
            assert isinstance(message, TableSnapshot), f"{message} is not of this protocol"
            present = {each.subscription.id for each in message.subscriptions}
            for gone in [each for each in self._heard[sender] if each not in present]:
                self._unhear(sender, gone)
            for each in message.subscriptions:
                self._hear(sender, each)

    def link_up(self, neighbour: BrokerId) -> None:
        """Tell a neighbour everything that it must know from here."""
        told = (self._told(entry, neighbour) for entry in self._table)
        snapshot = TableSnapshot(tuple(each for each in told if each is not None))
        self._outbox.send(neighbour, snapshot, Reason.SYNC)

    def _told(self, entry: Entry | None, neighbour: BrokerId) -> Subscribe | None:
        """Return what `neighbour` must be told of an entry, if anything."""
        if entry is None or self._broker.cluster not in entry.cbv_s:
            return None
        if self._kinds[neighbour] is LinkKind.ACOL and entry.last_hop == neighbour:
            return None
        return Subscribe(entry.subscription, entry.cbv_s, entry.host)

    def _hear(self, hop: BrokerId | None, message: Subscribe) -> None:
        identity = message.subscription.id
        entry = Entry(message.subscription, hop, message.cbv_s, message.host)
        if self._heard[hop].get(identity) == entry:
            return
        self._heard[hop][identity] = entry
        local = self._heard[LOCAL].get(identity)
        if hop is not LOCAL and local is not None and _rank(local) < _rank(entry):
            del self._heard[LOCAL][identity]  # the client has moved to another broker
            self._moved_away(identity)
        self._choose(identity)

    def _unhear(self, hop: BrokerId | None, identity: str) -> None:
        if self._heard[hop].pop(identity, None) is not None:
            self._choose(identity)

    def _choose(self, identity: str) -> None:
        """Put the newest news of a subscription into the table, and tell the neighbours."""
        heard = [entries[identity] for entries in self._heard.values() if identity in entries]
        old = self._table.get(identity)
        new = max(heard, key=_rank, default=None)
        if new == old:
            return
        if new is None:
            self._table.remove(identity)
        else:
            self._table.put(new)
        for neighbour in self._kinds:
            if neighbour in self._outbox.up:
                before, after = self._told(old, neighbour), self._told(new, neighbour)
                if after is not None and after != before:
                    self._outbox.send(neighbour, after, Reason.SUBSCRIPTION)
                elif after is None and before is not None:
                    self._outbox.send(neighbour, Unsubscribe(identity), Reason.SUBSCRIPTION)


def _rank(entry: Entry) -> tuple[int, BrokerId]:
    return entry.subscription.epoch, entry.host
