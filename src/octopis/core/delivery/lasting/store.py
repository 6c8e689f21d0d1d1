"""What channels need of a disk, and how they count who still needs what is on it."""

from collections.abc import Container, Sequence
from typing import Protocol

from octopis.core.delivery.lasting.records import (
    Arrival,
    Copy,
    Publication,
    Record,
    decode_kept,
    decode_record,
    encode,
)
from octopis.core.model import Notification
from octopis.errors import StoreDamaged


class Store(Protocol):
    """A log of records and some small state. `octopis.store` is the real one."""

    epoch: int
    """Which store it is: one that was lost, and made anew, has another."""

    @property
    def ticket(self) -> int:
        """Rises with all that is written; the driver says up to which one all is synced."""

    @property
    def used_bytes(self) -> int:
        """How much room it takes."""

    @property
    def live_bytes(self) -> int:
        """How much of that is needed."""

    @property
    def has_room(self) -> bool:
        """Whether the disk takes more."""

    @property
    def reclaimable(self) -> bool:
        """Whether room can be had back."""

    def append(self, body: bytes) -> int:
        """Write a record, and return its position."""

    def read(self, positions: Sequence[int]) -> list[bytes]:
        """Return records."""

    def free(self, position: int) -> None:
        """Know that nobody needs a record any more."""

    @property
    def position(self) -> int:
        """The position of the last record."""

    def reclaim(self, upto: int) -> int:
        """Have room back that only records up to a position took, and return how much."""

    def sparse(self, share: float, besides: Container[int] = ()) -> list[int]:
        """Return what is needed of a part of the log that is mostly not, but for some records."""

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Write some small state, after the records before it."""

    def delete(self, kind: str, key: str) -> None:
        """Forget some small state."""

    def items(self, kind: str) -> dict[str, bytes]:
        """Return all small state of a kind."""


class Codec(Protocol):
    """How notifications are written, and known again."""

    def encode(self, notification: Notification) -> bytes:
        """Return a notification as bytes."""

    def decode(self, body: bytes) -> Notification:
        """Return the notification that was encoded."""

    def nothing(self) -> Notification:
        """Return what goes in the place of a notification that is damaged: nobody can read it."""

    def publisher(self, notification: Notification) -> tuple[bytes, int]:
        """Return who has published it, and the publisher's number for it, which rises."""


class Shelf:
    """Records with those who hold them: a record is freed when nobody does.

    Most have one holder, which is not written down. While a checkpoint is on its way to the disk
    nothing is freed (`wait`): it says nothing of who has let go since, and with the record that
    would be forgotten.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.damaged: set[int] = set()
        """Records that were found damaged when they were read."""

        self.has_failed = False
        """Whether nothing can be written any more."""

        self._holders: dict[int, int] = {}
        self._waiting: list[int] | None = None

    def add(self, record: Record, holders: int) -> int:
        """Write a record that so many hold, and return its position."""
        position = self.store.append(encode(record))
        self.found(position, holders)
        return position

    def found(self, position: int, holders: int) -> None:
        """Know that so many hold a record."""
        if not holders:
            self._free(position)
        elif holders > 1:
            self._holders[position] = holders

    def release(self, position: int) -> None:
        """Know that one holder needs a record no more."""
        left = self._holders.get(position, 1) - 1
        if left > 1:
            self._holders[position] = left
        else:
            self._holders.pop(position, None)
            if not left:
                self._free(position)

    def write_again(self, position: int, record: Record) -> int:
        """Write a record at the end of the log instead; return where."""
        holders = self._holders.pop(position, 1)
        self._free(position)
        return self.add(record, holders)

    def _free(self, position: int) -> None:
        if self._waiting is None:
            self.store.free(position)
        else:
            self._waiting.append(position)

    def wait(self) -> None:
        """Free nothing from now on."""
        self._waiting = []

    def go_on(self) -> None:
        """Free what was to be freed meanwhile, and all that comes."""
        waiting, self._waiting = self._waiting or [], None
        for position in waiting:
            self.store.free(position)

    def read(self, positions: Sequence[int]) -> list[Record]:
        """Return records. Raises StoreDamaged where one is damaged."""
        return list(map(decode_record, self.store.read(positions)))

    def read_bodies(self, positions: Sequence[int]) -> list[bytes | None]:
        """Return the bodies of what is kept for durable subscriptions, None for damaged ones."""
        try:
            return [decode_kept(each).body for each in self.store.read(positions)]
        except StoreDamaged:
            return [
                each.body if isinstance(each, Publication | Arrival | Copy) else None
                for each in self.read_whole(positions)
            ]

    def read_whole(self, positions: Sequence[int]) -> list[Record | None]:
        """Return records, and None for those that are damaged, which are noted."""
        try:
            return [*self.read(positions)]
        except StoreDamaged:
            if len(positions) > 1:  # one by one, to find out which
                return [each for position in positions for each in self.read_whole([position])]
            self.damaged.update(positions)
            return [None]
