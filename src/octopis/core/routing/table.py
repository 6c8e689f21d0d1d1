"""The routing table: who asked for what, and where the way to them begins."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from octopis.core.matching import BitsetIndex, MatchingIndex
from octopis.core.matching.interface import Batch
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import Subscription

LOCAL = None
"""The last hop of subscriptions of the broker's own clients."""

IndexFactory = Callable[[], MatchingIndex[str, Any]]
"""Makes an empty index; what it answers with, beside subscriptions, is up to the table."""


class Entry(msgspec.Struct, frozen=True):
    """A subscription, the neighbour it came from, its host cluster and its host broker."""

    subscription: Subscription
    last_hop: BrokerId | None
    cbv_s: ClusterBitVector
    host: BrokerId


class RoutingTable:
    """One entry for every live subscription of the overlay, with a matching index behind it.

    `destination_of` says what routing wants to know of the matching entries of others: their
    last hop, or their host broker. Where it wants that as bits, `places` gives the order.

    Entries of local clients are matched apart. With `own`, they are also found among the others, as
    that destination: a local publisher's notification needs one look at the index instead of two.
    """

    def __init__(
        self,
        destination_of: Callable[[Entry], Any],
        index: IndexFactory = BitsetIndex,
        places: Iterable[Any] = (),
        own: BrokerId | None = None,
    ) -> None:
        self._destination_of = destination_of
        self._entries: dict[str, Entry] = {}
        self._remote_index = index()
        self._remote_index.hear_of(places)
        self._own = own
        self._index = index
        self._local_index = index() if own is None else None
        """With `own` made when it is first needed: a broker alone never does."""

        self._locals = 0
        """How many entries are of local clients."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, subscription: str) -> Entry | None:
        """Return the entry of a subscription, if there is one."""
        return self._entries.get(subscription)

    def put(self, entry: Entry) -> bool:
        """Store an entry, in place of an older one of the same subscription; tell if it is new."""
        identity = entry.subscription.id
        old = self._entries.get(identity)
        if old is not None and self._is_indexed_alike(old, entry):
            self._entries[identity] = entry
            return False
        self.remove(identity)
        filter_ = entry.subscription.filter
        if entry.last_hop is not LOCAL:
            self._remote_index.add(identity, filter_, self._destination_of(entry))
        else:
            if self._local_index is not None:
                self._local_index.add(identity, filter_, None)
            if self._own is not None:
                self._remote_index.add(identity, filter_, self._own)
        self._entries[identity] = entry
        self._locals += entry.last_hop is LOCAL
        return old is None

    def remove(self, subscription: str) -> Entry | None:
        """Remove the entry of a subscription and return it, if there is one."""
        entry = self._entries.pop(subscription, None)
        if entry is not None:
            self._locals -= entry.last_hop is LOCAL
            for index in (self._local_index, self._remote_index):
                if index is not None and subscription in index:
                    index.remove(subscription)
        return entry

    def tidy(self) -> None:
        """Put what was stored where it is found fast, before a notification waits for it."""
        self._remote_index.tidy()
        if self._local_index is not None:
            self._local_index.tidy()

    def local_matches(self, batch: Batch) -> list[list[str]]:
        """Return for each notification the matching subscriptions of local clients."""
        if self._local_index is None:
            self._local_index = self._index()
            for each in self:
                if each.last_hop is LOCAL:
                    self._local_index.add(each.subscription.id, each.subscription.filter, None)
        return self._local_index.matches(batch)

    def hosts(self, batch: Batch) -> list[set[BrokerId]]:
        """Return for each notification the hosts of all matching subscriptions."""
        return [{entry.host for entry in entries} for entries in self.matching(batch)]

    def matching(self, batch: Batch) -> list[list[Entry]]:
        """Return for each notification all matching entries."""
        entries = self._entries
        found = self._remote_index.matches(batch)
        if self._own is None:
            local = self.local_matches(batch)
            found = [[*here, *there] for here, there in zip(local, found, strict=True)]
        return [[entries[each] for each in matches] for matches in found]

    def destinations(self, batch: Batch) -> list[tuple[Any, ...]]:
        """Return for each notification the destinations with a matching entry of others."""
        return self._remote_index.destinations(batch)

    def reached(self, batch: Batch) -> list[int]:
        """Return for each notification the same as bits: bit i is the i-th of `places`."""
        return self._remote_index.reached(batch)

    def reached_and_local(self, batch: Batch) -> tuple[list[int], list[list[str]]]:
        """Return the same, and what `local_matches` does, in one go; the own bit may be on."""
        if not self._locals:
            return self.reached(batch), [[] for _ in batch]
        if self._locals == len(self):
            return [0] * len(batch), self._remote_index.matches(batch)
        return self._remote_index.reached_and_matches(batch, self._own)

    def _is_indexed_alike(self, old: Entry, new: Entry) -> bool:
        """Tell whether an entry stands in the index just as another does."""
        if old.subscription.filter != new.subscription.filter:
            return False
        if old.last_hop is LOCAL or new.last_hop is LOCAL:
            return old.last_hop is new.last_hop
        return bool(self._destination_of(old) == self._destination_of(new))
