"""A disk in virtual time: what is written is synced later, in groups, and power may fail before.

A group is what was written until its sync begins: first its records, then its small state. Where
power fails meanwhile, some of its records are there, from the first on; where all are, the state
may be there, too. What was given back just before may be there again. The driver hears of a sync
a little later than it happened, so power may fail in between.
"""

from collections.abc import Callable, Container, Sequence
from random import Random

import msgspec

from octopis.simulator.soak.agenda import Agenda
from octopis.simulator.soak.plan import MS, PlannedDisk

_State = dict[tuple[str, str], bytes]


class _Segment(msgspec.Struct):
    """A part of the log: records by their positions."""

    records: dict[int, bytes]
    live: set[int]

    @property
    def bytes(self) -> int:
        return sum(map(len, self.records.values()))


class Disk:
    """What is there whatever happens: synced records and small state of one broker."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.records: dict[int, bytes] = {}
        self.state: _State = {}
        self.slow_until_ns = self.full_until_ns = 0


class VirtualStore:
    """One life of a store on a disk."""

    def __init__(
        self,
        disk: Disk,
        planned: PlannedDisk,
        agenda: Agenda,
        random: Random,
        on_synced: Callable[[int], None],
    ) -> None:
        self.epoch = disk.epoch
        self.ticket = 0
        self._disk, self._planned, self._agenda, self._random = disk, planned, agenda, random
        self._on_synced = on_synced
        self._state = dict(disk.state)
        self._segments: list[_Segment] = []
        self._home: dict[int, _Segment] = {}
        self.position = 0
        for position, body in sorted(disk.records.items()):
            self._enter(position, body)
        self._records: dict[int, bytes] = {}
        self._puts: _State = {}
        self._deletes: set[tuple[str, str]] = set()
        self._going: tuple[dict[int, bytes], _State, set[tuple[str, str]]] | None = None
        self._gone: dict[int, bytes] = {}
        """Records that were given back since the last sync."""

        self._told_ns = 0
        self._will_sync = self._is_dead = False

    # Records

    def _enter(self, position: int, body: bytes) -> None:
        newest = self._segments[-1] if self._segments else None
        if newest is None or len(newest.records) >= self._planned.segment_records:
            newest = _Segment({}, set())
            self._segments.append(newest)
        newest.records[position] = body
        newest.live.add(position)
        self._home[position] = newest
        self.position = position

    def recovered(self) -> list[tuple[int, bytes]]:
        """Return all records, from the first on."""
        return [each for segment in self._segments for each in segment.records.items()]

    def append(self, body: bytes) -> int:
        """Write a record, and return its position."""
        self._enter(self.position + 1, body)
        self._records[self.position] = body
        self._written()
        return self.position

    def read(self, positions: Sequence[int]) -> list[bytes]:
        """Return records."""
        return [self._home[each].records[each] for each in positions]

    def free(self, position: int) -> None:
        """Know that nobody needs a record any more."""
        assert position in self._home[position].live, f"{position} is freed twice"
        self._home[position].live.discard(position)

    @property
    def used_bytes(self) -> int:
        """How much room it takes."""
        return sum(segment.bytes for segment in self._segments)

    @property
    def live_bytes(self) -> int:
        """How much of that is needed."""
        return sum(
            len(segment.records[each]) for segment in self._segments for each in segment.live
        )

    @property
    def has_room(self) -> bool:
        """Whether the disk takes more."""
        return self._agenda.now >= self._disk.full_until_ns

    @property
    def reclaimable(self) -> bool:
        """Whether room can be had back."""
        return any(not segment.live for segment in self._segments[:-1])

    def reclaim(self, upto: int) -> int:
        """Have room back that only records up to a position took, and return how much."""
        gone = [each for each in self._segments[:-1] if not each.live and max(each.records) <= upto]
        for segment in gone:
            self._segments.remove(segment)
            for position, body in segment.records.items():
                del self._home[position]
                self._disk.records.pop(position, None)
                if position not in self._records:
                    self._gone[position] = body
        return sum(each.bytes for each in gone)

    def sparse(self, share: float, besides: Container[int] = ()) -> list[int]:
        """Return what is needed of a part of the log that is mostly not, but for some records."""
        for segment in self._segments[:-1]:
            if segment.live and len(segment.live) < share * len(segment.records):
                found = [each for each in sorted(segment.live) if each not in besides]
                if found:
                    return found
        return []

    # Small state

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Write some small state, after the records before it."""
        self._state[kind, key] = self._puts[kind, key] = value
        self._deletes.discard((kind, key))
        self._written()

    def delete(self, kind: str, key: str) -> None:
        """Forget some small state."""
        self._state.pop((kind, key), None)
        self._puts.pop((kind, key), None)
        self._deletes.add((kind, key))
        self._written()

    def items(self, kind: str) -> dict[str, bytes]:
        """Return all small state of a kind."""
        return {key: value for (which, key), value in self._state.items() if which == kind}

    # Syncing

    @property
    def is_synced(self) -> bool:
        """Whether all that was written is on disk."""
        return self._going is None and not self._will_sync

    def _written(self) -> None:
        self.ticket += 1
        if not self._will_sync:
            self._will_sync = True
            if self._going is None:
                self._agenda.after(self._random.randint(0, 2 * MS), self._begin)

    def _begin(self) -> None:
        if self._is_dead:
            return
        self._will_sync = False
        self._going = self._records, self._puts, self._deletes
        self._records, self._puts, self._deletes = {}, {}, set()
        is_slow = self._agenda.now < self._disk.slow_until_ns
        longest_ms = self._planned.slow_ms_max if is_slow else self._planned.sync_ms_max
        self._agenda.after(self._random.randint(0, longest_ms * MS), self._end, self.ticket)

    def _end(self, ticket: int) -> None:
        if self._is_dead or self._going is None:
            return
        self._keep(*self._going)
        self._gone.clear()
        self._going = None
        told_ns = self._agenda.now + self._random.choice((0, 0, self._random.randint(0, 4 * MS)))
        self._told_ns = max(told_ns, self._told_ns)  # in their order
        self._agenda.at(self._told_ns, self._on_synced, ticket)
        if self._will_sync:
            self._agenda.after(0, self._begin)

    def _keep(self, records: dict[int, bytes], puts: _State, deletes: set[tuple[str, str]]) -> None:
        for position, body in records.items():
            if position in self._home:  # else it was given back before it was synced
                self._disk.records[position] = body
        self._disk.state.update(puts)
        for each in deletes:
            self._disk.state.pop(each, None)

    def lose_power(self) -> int:
        """End: a part of what is not synced is there, or nothing; return how much is not."""
        self._is_dead = True
        if self._random.random() < 0.5:
            self._disk.records.update(self._gone)
        if self._going is None:
            return len(self._records)
        records, puts, deletes = self._going
        there = self._random.choice((0, len(records), self._random.randint(0, len(records))))
        is_all = there == len(records) and self._random.random() < 0.5
        first = dict(list(records.items())[:there])
        self._keep(first, puts if is_all else {}, deletes if is_all else set())
        return len(self._records) + len(records) - there
