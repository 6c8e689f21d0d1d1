"""Durable subscriptions of a host: what each has not acknowledged, by its positions.

Every notification for a durable subscription has a position there: 1, 2, 3, ... It is kept once in
the log, whoever wants it; a subscription knows for each position where. What is acknowledged is
released. What is not on disk yet is not read by anybody: else a position could mean something else
after a loss of power.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from octopis.core.delivery.lasting.positions import Positions
from octopis.core.delivery.lasting.records import DurableState, Policy, decode_durable, encode
from octopis.core.delivery.lasting.store import Shelf


class Excerpt(NamedTuple):
    """What is read of a durable subscription.

    `bodies` have the `positions`; before the first of them `missing` were dropped, are damaged or
    were never kept. `end` is the last position that there is.
    """

    positions: Sequence[int]
    bodies: list[bytes]
    missing: int
    end: int


class Durable(Positions):
    """One durable subscription, as its host knows it."""

    def __init__(self, state: DurableState) -> None:
        super().__init__(state.acked + 1)
        self.state = state
        self.end = state.next - 1
        """The last position that is on disk."""

        self.annexed = 0
        """Up to this position of its annex all is here: known when it is recovered."""

    @property
    def id(self) -> str:
        """What the overlay calls it."""
        return id_of(self.state.name, self.state.moves)

    @property
    def lag(self) -> int:
        """How many are not acknowledged."""
        return self.end - self.state.acked

    def lack_up_to(self, position: int) -> None:
        """Know that there were notifications up to a position, whether they are found or not."""
        super().lack_up_to(position)
        self.end = max(self.end, position)

    def begin_at(self, position: int) -> None:
        """Begin at another position: nothing before it is wanted any more."""
        super().begin_at(position)
        self.end = position - 1

    def recovered(self) -> None:
        """Know that all has been found that there is of an earlier life."""
        super().recovered()
        self.lack_up_to(max(self.next, self.state.next) - 1)


def id_of(name: str, moves: int = 0) -> str:
    """Return what the overlay calls a durable subscription; no other has such a name.

    While it moves it is at two hosts, and both get what matches: so it is called something else
    after each move.
    """
    return f"{PREFIX}{name}{MOVE}{moves}" if moves else PREFIX + name


def name_of(identity: str) -> str:
    """Return the name of a durable subscription by what the overlay calls it."""
    return identity.removeprefix(PREFIX).partition(MOVE)[0]


PREFIX = "durable:"
MOVE = "#"
"""Stands in no name."""


class Durables:
    """All durable subscriptions of one host."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._store = shelf.store
        self.by_id: dict[str, Durable] = {}
        """Where what matches is kept, by what the overlay calls it."""

        self.annexes: dict[str, Durable] = {}
        """Where that is for those that are on their way here, by their names."""

        self._by_name: dict[str, Durable] = {}
        self._by_key: dict[int, Durable] = {}
        self._unsynced: deque[tuple[int, dict[Durable, int]]] = deque()
        self.on_more: Callable[[Durable], None] = lambda _: None
        """Is told of those for which more can be read."""

        for value in self._store.items("durable").values():
            self._enter(Durable(decode_durable(value)))
        for value in self._store.items("annex").values():
            self._enter_annex(Durable(decode_durable(value)))
        self._next_key = 1 + int.from_bytes(self._store.items("counter").get("key", b"\0"), "big")

    def __iter__(self) -> Iterator[Durable]:
        return iter(list(self._by_name.values()))

    def get(self, name: str) -> Durable | None:
        """Return a durable subscription by its name."""
        return self._by_name.get(name)

    # What changes

    def make(self, state: DurableState) -> Durable:
        """Begin to keep for a new one; its key is chosen here."""
        durable = Durable(msgspec.structs.replace(state, key=self._new_key()))
        self._enter(durable)
        self.write(durable)
        return durable

    def annex(self, durable: Durable) -> None:
        """Keep what matches one apart, until it is known what stands before that."""
        about = {"key": self._new_key(), "acked": 0, "next": 1}
        annex = Durable(msgspec.structs.replace(durable.state, **about))
        self._enter_annex(annex)
        self.write(annex)

    def drop_annex(self, durable: Durable) -> None:
        """Keep what matches one with it from now on, and forget what was kept apart."""
        annex = self.annexes.pop(durable.state.name)
        self._release(annex, annex.next - 1)
        del self._by_key[annex.state.key]
        self.by_id[durable.id] = durable
        self._store.delete("annex", durable.state.name)

    def _new_key(self) -> int:
        key, self._next_key = self._next_key, self._next_key + 1
        self._store.put("counter", "key", key.to_bytes(8, "big"))
        return key

    def change(self, durable: Durable, **changes: object) -> None:
        """Note what has changed of one."""
        durable.state = msgspec.structs.replace(durable.state, **changes)
        self.write(durable)

    def drop(self, durable: Durable) -> None:
        """Keep nothing more for one, and forget it."""
        if durable.state.name in self.annexes:
            self.drop_annex(durable)
        self._release(durable, durable.next)
        del self.by_id[durable.id], self._by_key[durable.state.key]
        del self._by_name[durable.state.name]
        self._store.delete("durable", durable.state.name)

    def _release(self, durable: Durable, upto: int) -> None:
        for where in durable.release(upto):
            self._shelf.release(where)

    def acknowledge(self, durable: Durable, position: int, now_ns: int) -> None:
        """Release all up to a position, which is known to be there."""
        acked = max(position, durable.state.acked)
        self._release(durable, acked)
        self.change(durable, acked=acked, used_ns=now_ns)
        if durable.state.is_suspended and acked == durable.next - 1:
            self._resume(durable)

    def _resume(self, durable: Durable) -> None:
        """Keep for one again that was suspended; the positions that it missed stay empty."""
        skipped = max(1, durable.state.missed)
        durable.begin_at(durable.next + skipped)
        acked = durable.end
        dropped = durable.state.dropped + skipped
        self.change(durable, acked=acked, dropped=dropped, is_suspended=False, missed=0)

    def write(self, durable: Durable) -> None:
        """Write down what is known of one."""
        durable.state = msgspec.structs.replace(durable.state, next=durable.next)
        name = durable.state.name
        kind = "annex" if self.annexes.get(name) is durable else "durable"
        self._store.put(kind, name, encode(durable.state))

    def write_all(self) -> None:
        """Write down what is known of all."""
        for durable in self._by_key.values():
            self.write(durable)

    def _enter(self, durable: Durable) -> None:
        self._by_name[durable.state.name] = self.by_id[durable.id] = durable
        self._by_key[durable.state.key] = durable

    def _enter_annex(self, annex: Durable) -> None:
        self.annexes[annex.state.name] = self.by_id[annex.id] = annex
        self._by_key[annex.state.key] = annex

    # What comes

    def wanted(self, matches: list[str], origin: int = 0, number: int = 0) -> list[Durable]:
        """Return those, among subscriptions that match, for which a notification is kept.

        What has come with a number on a stream may be late: one that has moved here meanwhile
        brought it along.
        """
        found = []
        for each in matches:
            durable = self.by_id.get(each)
            if durable is None or durable.state.moved_to:
                continue
            cut = durable.state.cut
            if cut is not None and 0 < number <= cut.get(origin, 0):
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

    def found(self, kept: tuple[int, ...], where: int, size: int, annexed: int = 0) -> None:
        """Take in a record from an earlier life.

        It may have a key that was not written down any more: nobody else gets that.
        """
        self._next_key = max([self._next_key, *(key + 1 for key in kept[::2])])
        for durable, position in self._wanting(kept):
            durable.found(position, where, size)
            durable.annexed = max(durable.annexed, annexed)

    def holders(self, kept: tuple[int, ...], where: int) -> int:
        """Return how many want such a record still: if it is not found further on."""
        return sum(each.where(position) == where for each, position in self._wanting(kept))

    def recovered(self) -> None:
        """Know that all records of earlier lives have been taken in; who holds them is not known.

        What was taken from an annex when the last life ended is not taken from there again.
        """
        for durable in self._by_key.values():
            durable.recovered()
        for name, annex in self.annexes.items():
            taken = self._by_name[name].annexed
            if taken > annex.state.acked:
                annex.release(taken)
                annex.state = msgspec.structs.replace(annex.state, acked=taken)

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

        What is damaged between others is left out: their positions tell.
        """
        positions, where = durable.within(after, durable.end, count, size)
        until = positions[-1] if positions else max(after, durable.end)
        found = self._shelf.read_bodies(where)
        bodies = [each for each in found if each is not None]
        if len(bodies) < len(found):
            positions = [at for at, each in zip(positions, found, strict=True) if each is not None]
        missing = (positions[0] - 1 if positions else until) - after
        return Excerpt(positions, bodies, missing, durable.end)

    # What happens at the quota

    def make_room(self) -> bool:
        """Let go what may be let go for the oldest record; False where nothing may be.

        Whoever drops its oldest loses a part of what it has not acknowledged; whoever is
        suspended gets nothing more until it has acknowledged everything.
        """
        is_any = False
        for durable in self:
            if durable.state.joins or durable.state.moved_to:  # it is wanted elsewhere as it is
                continue
            policy, waiting = durable.state.policy, durable.kept
            if policy is Policy.DROP_OLDEST and waiting:
                upto = durable.counted(max(1, waiting // 4))
                count = upto - durable.first + 1
                self._release(durable, upto)
                self.change(durable, acked=upto, dropped=durable.state.dropped + count)
                durable.end = max(durable.end, upto)
                is_any = True
            elif policy is Policy.SUSPEND and waiting and not durable.state.is_suspended:
                self.change(durable, is_suspended=True)
                is_any = True
        return is_any
