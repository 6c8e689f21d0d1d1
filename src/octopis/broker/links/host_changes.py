"""Changes that their hosts have numbered, and hosts' tables, as they wait for one link.

Changes of one host that follow each other and have the same targets are a run. In a run a later
change of a subscription takes the place of the earlier one, whose number is left out: whoever is
told the others comes from number to number all the same, and at the end of the run to the same
subscriptions. In between it lacks only what a change with a higher number will tell, from here or
from whoever it catches up with. Ends stay: the neighbour may know of the beginning from others.
"""

from dataclasses import dataclass
from itertools import count
from typing import Any

from msgspec.structs import replace

from octopis.core.model import BrokerId
from octopis.core.routing.algorithms.hosts import Version
from octopis.core.routing.messages import HostChange, HostTable

_Way = tuple[BrokerId, int, int, int]
Key = tuple[int, str | int]
"""A run and a subscription in it; or the number of a change there that is about several."""


@dataclass(slots=True)
class _Run:
    """Changes of a host from `after` (all until then were told) to `sequence`."""

    number: int
    way: _Way
    after: int
    sequence: int
    waiting: set[str | int]


class HostChangeRuns:
    """The runs of changes that wait."""

    def __init__(self) -> None:
        self._numbers = count()
        self._newest: dict[_Way, _Run] = {}
        self._by_number: dict[int, _Run] = {}

    def put(self, change: HostChange) -> Key | None:
        """Return what a change is about: its run and its subscription; None where it waits already.

        A change that waits under the same key is obsolete.
        """
        way = change.host, change.generation, change.targets, change.tried
        run = self._newest.get(way)
        if run is not None and run.after <= change.after and change.sequence <= run.sequence:
            return None
        if run is None or run.sequence != change.after:
            run = _Run(next(self._numbers), way, change.after, change.after, set())
            self._newest[way] = self._by_number[run.number] = run
        run.sequence = change.sequence
        about = _about(change)
        run.waiting.add(about)
        return run.number, about

    def as_told(self, key: object, change: HostChange) -> HostChange:
        """Return a change as it follows the one that was told before it."""
        assert isinstance(key, tuple), f"{key} is no key of a change"
        after = self._by_number[key[0]].after
        return change if change.after == after else replace(change, after=after)

    def told(self, key: object, change: HostChange) -> None:
        """Note that a change is told, and with it all before it."""
        assert isinstance(key, tuple), f"{key} is no key of a change"
        number, about = key
        run = self._by_number[number]
        run.after = change.sequence
        run.waiting.discard(about)
        if not run.waiting:
            del self._by_number[number]
            if self._newest.get(run.way) is run:
                del self._newest[run.way]


def _about(change: HostChange) -> str | int:
    """Return the subscription that a change is about; of one with several, its number."""
    names = [*(each.id for each in change.added), *change.removed]
    return names[0] if len(names) == 1 else change.sequence


@dataclass(slots=True)
class _Table:
    version: Version
    parts: list[Any]
    """The keys of its parts; it is begun when the first waits no more."""


class HostTables:
    """Which tables of hosts wait: whoever asks again before he was told is not told twice."""

    def __init__(self) -> None:
        self._waiting: dict[BrokerId, _Table] = {}

    def has(self, table: HostTable) -> bool:
        """Tell whether a table waits that is as new."""
        waiting = self._waiting.get(table.host)
        return waiting is not None and waiting.version >= (table.generation, table.sequence)

    def older(self, host: BrokerId) -> list[Any]:
        """Return the keys of the parts of a host's table that was to be told."""
        waiting = self._waiting.get(host)
        return [] if waiting is None else waiting.parts

    def add(self, table: HostTable, parts: list[Any]) -> None:
        """Note that a table waits, under these keys."""
        self._waiting[table.host] = _Table((table.generation, table.sequence), parts)

    def told(self, table: HostTable) -> None:
        """Note that the last part of a table was told."""
        waiting = self._waiting.get(table.host)
        if waiting is not None and waiting.version == (table.generation, table.sequence):
            del self._waiting[table.host]
