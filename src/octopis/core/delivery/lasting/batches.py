"""What batches are made of: attempts at parts, staged in pieces; and what is published of them.

staging.py says how all this changes.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from octopis.core.delivery.lasting.records import Decision

SEQUENCE_BITS = 32
"""A row's number within its batch stands below the batch's number."""


class Attempt(NamedTuple):
    """One attempt at a part of a batch."""

    source: bytes
    batch: int
    part: int
    attempt: int


@dataclass(slots=True)
class Piece:
    """So many rows of an attempt, from the row `first` on: one record of the log."""

    position: int
    first: int
    count: int
    bytes: int

    @property
    def until(self) -> int:
        """The row behind the last one."""
        return self.first + self.count


class Commit:
    """A batch that is being published: `pieces` are where its `count` rows are, in order."""

    def __init__(self, decision: Decision, position: int, pieces: list[Piece]) -> None:
        self.decision = decision
        self.position = position
        self.pieces = pieces
        self._ends = list(accumulate(each.count for each in pieces))
        self.count = self._ends[-1] if pieces else 0
        self.done = 0
        """How many of them are published."""

    @property
    def key(self) -> tuple[bytes, int]:
        """Whose batch it is, and which."""
        return self.decision.source, self.decision.batch

    @property
    def attempts(self) -> list[Attempt]:
        """The attempts that are published."""
        return [Attempt(*self.key, part, number) for part, number, _ in self.decision.attempts]

    def sequence(self, row: int) -> int:
        """Return the number by which a row is known to be published."""
        return self.decision.batch << SEQUENCE_BITS | row

    def piece(self, row: int) -> tuple[Piece, int]:
        """Return where a row is, and the number of the first row there in the whole batch."""
        number = bisect_right(self._ends, row)
        piece = self.pieces[number]
        return piece, self._ends[number] - piece.count
