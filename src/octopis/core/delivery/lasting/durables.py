"""Durable subscriptions of a host: what each has not acknowledged, by its positions.

Every notification for a durable subscription has a position there: 1, 2, 3, ... It is kept once in
the log, whoever wants it; a subscription knows for each position where. What is acknowledged is
released. What is not on disk yet is not read by anybody: else a position could mean something else
after a loss of power.
"""

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from octopis.core.delivery.lasting.records import DurableState, Policy, decode_durable, encode
from octopis.core.delivery.lasting.store import Shelf

_TRIM = 4_096
_DAMAGED = 0


class Excerpt(NamedTuple):
    """What is read of a durable subscription.

    `bodies` have the `positions`; before the first of them `missing` were dropped, are damaged or
    were never kept. `end` is the last position that there is.
    """

    positions: list[int]
    bodies: list[bytes]
    missing: int
    end: int


class Durable:
    """One durable subscription, as its host knows it."""

    def __init__(self, state: DurableState) -> None:
        self.state = state
        self.first = state.acked + 1
        """The position of the first that is in `_where`."""

        self.end = state.next - 1
        """The last position that is on disk."""

        self.bytes = 0
        self._start = 0
        self._where = array("Q")
        self._sizes = array("I")

    @property
    def id(self) -> str:
        """What the overlay calls it."""
        return id_of(self.state.name)

    @property
    def next(self) -> int:
        """The next position."""
        return self.first + len(self._where) - self._start

    @property
    def lag(self) -> int:
        """How many are not acknowledged."""
        return self.end - self.state.acked

    def add(self, where: int, size: int) -> None:
        """Take in the next notification, which is there in the log."""
        self._where.append(where)
        self._sizes.append(size)
        self.bytes += size

    def found(self, position: int, where: int, size: int) -> None:
        """Take in what is in the log from an earlier life.

        It may have been written again since, further on; and what is not found is damaged.
        """
        self.lack_up_to(position)
        place = self._start + position - self.first
        self.bytes += size - self._sizes[place]
        self._where[place], self._sizes[place] = where, size

    def lack_up_to(self, position: int) -> None:
        """Know that there were notifications up to a position, whether they are found or not."""
        while self.next <= position:
            self.add(_DAMAGED, 0)
        self.end = max(self.end, position)

    def where(self, position: int) -> int:
        """Return where a notification is in the log."""
        return self._where[self._start + position - self.first]

    def moved(self, position: int, where: int) -> None:
        """Know that a notification is at another place of the log now."""
        if self.first <= position < self.next:
            self._where[self._start + position - self.first] = where

    def release(self, upto: int) -> list[int]:
        """Forget positions up to one; return where they were in the log."""
        count = min(upto, self.next - 1) - self.first + 1
        if count <= 0:
            return []
        end = self._start + count
        gone = self._where[self._start : end].tolist()
        self.bytes -= sum(self._sizes[self._start : end])
        self.first += count
        self._start = end
        if self._start > _TRIM and self._start > len(self._where) // 2:
            del self._where[: self._start], self._sizes[: self._start]
            self._start = 0
        return [each for each in gone if each != _DAMAGED]

    def within(self, after: int, count: int, size: int) -> tuple[int, list[int]]:
        """Return the first position after one, and where the next are that take so much room."""
        first = max(after + 1, self.first)
        start = self._start + first - self.first
        most = max(0, min(count, self.end - first + 1))
        where = self._where[start : start + most]
        taken = 0
        for number, each in enumerate(self._sizes[start : start + most]):
            taken += each
            if taken > size and number:
                return first, where[:number].tolist()
        return first, where.tolist()


def id_of(name: str) -> str:
    """Return what the overlay calls a durable subscription; no other has such a name."""
    return PREFIX + name


PREFIX = "durable:"


class Durables:
    """All durable subscriptions of one host."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._store = shelf.store
        self.by_id: dict[str, Durable] = {}
        self._by_key: dict[int, Durable] = {}
        self._unsynced: deque[tuple[int, dict[Durable, int]]] = deque()
        self.on_more: Callable[[Durable], None] = lambda _: None
        """Is told of those for which more can be read."""

        for value in self._store.items("durable").values():
            self._enter(Durable(decode_durable(value)))
        self._next_key = 1 + int.from_bytes(self._store.items("counter").get("key", b"\0"), "big")

    def __iter__(self) -> Iterator[Durable]:
        return iter(list(self.by_id.values()))

    def get(self, name: str) -> Durable | None:
        """Return a durable subscription by its name."""
        return self.by_id.get(id_of(name))

    # What changes

    def make(self, state: DurableState) -> Durable:
        """Begin to keep for a new one; its key is chosen here."""
        key, self._next_key = self._next_key, self._next_key + 1
        self._store.put("counter", "key", key.to_bytes(8, "big"))
        durable = Durable(msgspec.structs.replace(state, key=key))
        self._enter(durable)
        self.write(durable)
        return durable

    def change(self, durable: Durable, **changes: object) -> None:
        """Note what has changed of one."""
        durable.state = msgspec.structs.replace(durable.state, **changes)
        self.write(durable)

    def drop(self, durable: Durable) -> None:
        """Keep nothing more for one, and forget it."""
        for where in durable.release(durable.next):
            self._shelf.release(where)
        del self.by_id[durable.id], self._by_key[durable.state.key]
        self._store.delete("durable", durable.state.name)

    def acknowledge(self, durable: Durable, position: int, now_ns: int) -> None:
        """Release all up to a position, which is known to be there."""
        acked = max(position, durable.state.acked)
        for where in durable.release(acked):
            self._shelf.release(where)
        self.change(durable, acked=acked, used_ns=now_ns)
        if durable.state.is_suspended and acked == durable.next - 1:
            self._resume(durable)

    def _resume(self, durable: Durable) -> None:
        """Keep for one again that was suspended; the positions that it missed stay empty."""
        skipped = max(1, durable.state.missed)
        durable.first += skipped
        durable.end = acked = durable.first - 1
        dropped = durable.state.dropped + skipped
        self.change(durable, acked=acked, dropped=dropped, is_suspended=False, missed=0)

    def write(self, durable: Durable) -> None:
        """Write down what is known of one."""
        durable.state = msgspec.structs.replace(durable.state, next=durable.next)
        self._store.put("durable", durable.state.name, encode(durable.state))

    def _enter(self, durable: Durable) -> None:
        self.by_id[durable.id] = durable
        self._by_key[durable.state.key] = durable

    # What comes

    def wanted(self, matches: list[str]) -> list[Durable]:
        """Return those, among subscriptions that match, for which a notification is kept."""
        found = []
        for each in matches:
            durable = self.by_id.get(each)
            if durable is None:
                continue
            if durable.state.is_suspended:  # said when it goes on; not written down each time
                durable.state = msgspec.structs.replace(
                    durable.state, missed=durable.state.missed + 1
                )
            else:
                found.append(durable)
        return found

    def add(self, durables: Iterable[Durable], where: int, size: int) -> None:
        """Let a record of the log be the next of these."""
        for durable in durables:
            durable.add(where, size)

    def await_sync(self, touched: Iterable[Durable], ticket: int) -> None:
        """Let what was added be read once `ticket` is synced."""
        self._unsynced.append((ticket, {each: each.next - 1 for each in touched}))

    def synced(self, ticket: int) -> None:
        """Know that all up to a ticket is on disk."""
        more: dict[Durable, None] = {}
        while self._unsynced and self._unsynced[0][0] <= ticket:
            for durable, end in self._unsynced.popleft()[1].items():
                durable.end = max(durable.end, end)
                more[durable] = None
        for durable in more:
            self.on_more(durable)

    def found(self, kept: tuple[int, ...], where: int, size: int) -> None:
        """Take in a record from an earlier life."""
        for durable, position in self._wanting(kept):
            durable.found(position, where, size)

    def holders(self, kept: tuple[int, ...], where: int) -> int:
        """Return how many want such a record still: if it is not found further on."""
        return sum(each.where(position) == where for each, position in self._wanting(kept))

    def recovered(self) -> None:
        """Know that all records of earlier lives have been taken in."""
        for durable in self:
            durable.lack_up_to(durable.state.next - 1)

    def moved(self, kept: tuple[int, ...], where: int) -> None:
        """Know that a record is at another place of the log now."""
        for durable, position in self._wanting(kept):
            durable.moved(position, where)

    def _wanting(self, kept: tuple[int, ...]) -> Iterator[tuple[Durable, int]]:
        for key, position in zip(kept[::2], kept[1::2], strict=True):
            durable = self._by_key.get(key)
            if durable is not None and position > durable.state.acked:
                yield durable, position

    # What is read

    def read(self, durable: Durable, after: int, count: int, size: int) -> Excerpt:
        """Return what comes after a position: so many, of about that size, at most.

        It ends before the next that is damaged, of which the next read tells: so nothing that is
        missing goes unnoticed between others.
        """
        first, where = durable.within(after, count, size)
        skipped = 0
        while skipped < len(where) and where[skipped] == _DAMAGED:
            skipped += 1
        there = where[skipped:]
        if _DAMAGED in there:
            there = there[: there.index(_DAMAGED)]
        bodies = [record.body for record in self._shelf.read(there)]  # type: ignore[union-attr]
        begin = first + skipped
        positions = list(range(begin, begin + len(there)))
        return Excerpt(positions, bodies, begin - after - 1, durable.end)

    # What happens at the quota

    def make_room(self) -> bool:
        """Let go what may be let go for the oldest record; False where nothing may be.

        Whoever drops its oldest loses a part of what it has not acknowledged; whoever is
        suspended gets nothing more until it has acknowledged everything.
        """
        is_any = False
        for durable in self:
            policy, waiting = durable.state.policy, durable.next - durable.first
            if policy is Policy.DROP_OLDEST and waiting:
                count = max(1, waiting // 4)
                upto = durable.first + count - 1
                for where in durable.release(upto):
                    self._shelf.release(where)
                self.change(durable, acked=upto, dropped=durable.state.dropped + count)
                durable.end = max(durable.end, upto)
                is_any = True
            elif policy is Policy.SUSPEND and waiting and not durable.state.is_suspended:
                self.change(durable, is_suspended=True)
                is_any = True
        return is_any
