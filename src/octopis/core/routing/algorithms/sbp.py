"""The two-step subscription broadcast (SBP, Algorithm 1), kept up to date over every link.

    step one    aCOL   a primary subscription goes through its host cluster, which is a tree
    step two    iCOL   every broker of the host cluster gives a secondary copy to its region

An entry is primary where CBV_s names the holder's own cluster, secondary elsewhere; a secondary
one is stored and sent nowhere.

Paper deviation: Algorithm 1 keeps a `state` in the message, sets it to SECONDARY in a loop and
never back, so a primary neighbour after a secondary one would get the wrong state. Here the
state is derived from CBV_s, and the message is the same for everybody.

One rule covers new links, cut links and restarts: what a broker must tell a neighbour follows
from its own table alone (`_news_for`), and the neighbour keeps what it has heard link by link
(`_heard`). A change is told as a difference; a link that comes up starts with the whole
(TableSnapshot). So both ends agree as soon as the link has carried everything, whatever happened
before.
"""

from collections.abc import Callable

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.link_status import LinkStatusTable
from octopis.core.routing.messages import (
    Message,
    Reason,
    Stored,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.routing.outbox import Outbox
from octopis.core.routing.table import LOCAL, Entry, RoutingTable


def forwards(*, is_primary: bool, is_way_back: bool) -> bool:
    """Tell whether a subscription goes onto a link.

    `is_primary`: it is at a broker of its host cluster, from a client or over an aCOL;
    `is_way_back`: it came over this link.
    """
    return is_primary and not is_way_back


class TwoStepBroadcast:
    """Spreads the subscriptions of local clients and keeps the routing table."""

    speaks: tuple[type, ...] = (Subscribe, Unsubscribe, TableSnapshot)

    def __init__(  # noqa: PLR0913, PLR0917 - one call, in strategy.py
        self,
        broker: BrokerId,
        links: LinkStatusTable,
        table: RoutingTable,
        outbox: Outbox,
        moved_away: Callable[[str], None],
        unheard: set[BrokerId],
    ) -> None:
        self._broker = broker
        self._links = links
        self._table = table
        self._outbox = outbox
        self._moved_away = moved_away
        self._own_bit = ClusterBitVector.of([broker.cluster])
        self._heard: dict[BrokerId | None, dict[str, Entry]] = {LOCAL: {}}
        for neighbour in links:
            self._heard[neighbour] = {}
        self._present: dict[BrokerId, set[str]] = {}
        """What is in the parts so far of the snapshots that neighbours are sending."""

        self.unheard = unheard

    def subscribe(self, subscription: Subscription, now_ns: int) -> None:
        """Take in a subscription of a local client."""
        self._take_in(LOCAL, Subscribe(subscription, self._own_bit, self._broker), now_ns)

    def unsubscribe(self, subscription: str, now_ns: int) -> None:
        """Take back a subscription of a local client."""
        self._take_back(LOCAL, subscription, now_ns)

    def receive(self, sender: BrokerId, message: Message, now_ns: int) -> None:
        """Take in what a neighbour says about subscriptions."""
        if isinstance(message, Subscribe):
            self._take_in(sender, message, now_ns)
        elif isinstance(message, Unsubscribe):
            self._take_back(sender, message.id, now_ns)
        else:
            assert isinstance(message, TableSnapshot), f"{message} is not of this protocol"
            self._take_part(sender, message, now_ns)

    def _take_part(self, sender: BrokerId, part: TableSnapshot, now_ns: int) -> None:
        """Take in a part of a snapshot; after the last, what was in none is taken back."""
        present = self._present.setdefault(sender, set())
        present.update(each.subscription.id for each in part.subscriptions)
        if part.last:
            for gone in [each for each in self._heard[sender] if each not in present]:
                self._take_back(sender, gone, now_ns)
            del self._present[sender]
            self.unheard.discard(sender)
        for each in part.subscriptions:
            self._take_in(sender, each, now_ns)

    def link_up(self, neighbour: BrokerId, now_ns: int) -> None:
        """Tell a neighbour everything that it must know from here."""
        self._present.pop(neighbour, None)  # what it had begun to tell ended with the link
        news = (self._news_for(neighbour, entry) for entry in self._table)
        snapshot = TableSnapshot(tuple(each for each in news if each is not None))
        self._outbox.send(neighbour, snapshot, Reason.SYNC, now_ns)

    def ways(self, host: BrokerId, sender: BrokerId | None) -> list[BrokerId]:
        """Return the links on which changes of `host` go on from here that came from `sender`."""
        is_primary = host.cluster == self._broker.cluster
        return [
            link
            for link, status in self._links.items()
            if status.is_up and forwards(is_primary=is_primary, is_way_back=link == sender)
        ]

    version = (0, 0)

    def knows(self, host: BrokerId, version: tuple[int, int]) -> bool:  # noqa: ARG002
        """Whatever stood before a mark came before it: over this link, or in its snapshot."""
        return True

    def _news_for(self, neighbour: BrokerId, entry: Entry | None) -> Subscribe | None:
        """Return what `neighbour` must be told of an entry, if anything."""
        if entry is None or not forwards(
            is_primary=self._broker.cluster in entry.cbv_s, is_way_back=entry.last_hop == neighbour
        ):
            return None
        return Subscribe(entry.subscription, entry.cbv_s, entry.host)

    def _take_in(self, hop: BrokerId | None, message: Subscribe, now_ns: int) -> None:
        identity = message.subscription.id
        entry = Entry(message.subscription, hop, message.cbv_s, message.host)
        if self._heard[hop].get(identity) == entry:
            return
        self._heard[hop][identity] = entry
        local = self._heard[LOCAL].get(identity)
        if hop is not LOCAL and local is not None and _rank(local) < _rank(entry):
            del self._heard[LOCAL][identity]  # the client has moved to another broker
            self._moved_away(identity)
        self._choose(identity, now_ns)

    def _take_back(self, hop: BrokerId | None, identity: str, now_ns: int) -> None:
        if self._heard[hop].pop(identity, None) is not None:
            self._choose(identity, now_ns)

    def _choose(self, identity: str, now_ns: int) -> None:
        """Put the newest news of a subscription into the table, and tell the neighbours."""
        heard = [entries[identity] for entries in self._heard.values() if identity in entries]
        old = self._table.get(identity)
        new = max(heard, key=_rank, default=None)
        if new == old:
            return
        if new is None:
            self._table.remove(identity)
        elif self._table.put(new):
            self._outbox.add(Stored(identity, new.host))
        for neighbour, status in self._links.items():
            if status.is_up:
                before, after = self._news_for(neighbour, old), self._news_for(neighbour, new)
                if after is not None and after != before:
                    self._outbox.send(neighbour, after, Reason.SUBSCRIPTION, now_ns)
                elif after is None and before is not None:
                    gone = Unsubscribe(identity)
                    self._outbox.send(neighbour, gone, Reason.SUBSCRIPTION, now_ns)


def _rank(entry: Entry) -> tuple[int, BrokerId]:
    return entry.subscription.epoch, entry.host
