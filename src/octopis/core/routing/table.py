"""The routing table: who asked for what, and where the way to them begins."""

from collections.abc import Callable, Iterator

import msgspec

from octopis.core.filters import Filter
from octopis.core.matching import BitsetIndex, MatchingIndex
from octopis.core.matching.interface import Batch
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import Subscription

LOCAL = None
"""The last hop of subscriptions of the broker's own clients."""

IndexFactory = Callable[[], MatchingIndex[str, BrokerId]]


class Entry(msgspec.Struct, frozen=True):
    """A subscription, the neighbour it came from, its host cluster and its host broker."""

    subscription: Subscription
    last_hop: BrokerId | None
    cbv_s: ClusterBitVector
    host: BrokerId


class RoutingTable:
    """One entry for every live subscription of the overlay, with a matching index behind it.

    `destination_of` says what routing wants to know of the matching entries of others: their
    last hop, or their host broker.
    """

    def __init__(
        self, destination_of: Callable[[Entry], BrokerId], index: IndexFactory = BitsetIndex
    ) -> None:
        self._destination_of = destination_of
        self._entries: dict[str, Entry] = {}
        self._local_index = index()
        self._remote_index = index()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, subscription: str) -> Entry | None:
        """Return the entry of a subscription, if there is one."""
        return self._entries.get(subscription)

    def put(self, entry: Entry) -> None:
        """Store an entry, in place of an older one of the same subscription."""
        identity = entry.subscription.id
        old = self._entries.get(identity)
        if old is None or self._indexed(old) != self._indexed(entry):
            self.remove(identity)
            index, filter_, destination = self._indexed(entry)
            index.add(identity, filter_, destination)
        self._entries[identity] = entry

    def remove(self, subscription: str) -> Entry | None:
        """Remove the entry of a subscription and return it, if there is one."""
        entry = self._entries.pop(subscription, None)
        if entry is not None:
            self._indexed(entry)[0].remove(subscription)
        return entry

    def local_matches(self, batch: Batch) -> list[list[str]]:
        """Return for each notification the matching subscriptions of local clients."""
        return self._local_index.matches(batch)

    def destinations(self, batch: Batch) -> list[tuple[BrokerId, ...]]:
        """Return for each notification the destinations with a matching entry of others."""
        return self._remote_index.destinations(batch)

    def _indexed(self, entry: Entry) -> tuple[MatchingIndex[str, BrokerId], Filter, BrokerId]:
        """Return where and how an entry stands in an index."""
        filter_ = entry.subscription.filter
        if entry.last_hop is LOCAL:
            return self._local_index, filter_, entry.host
        return self._remote_index, filter_, self._destination_of(entry)
