"""What clients have written down, each on its own, and what the law says to it.

A publisher's log has a line for each request that was answered: when, the first number, how many.
A subscriber's log has a line for each notification, in the order in which it came: when, whose, and
its number. Nobody else had a hand in either. A line that begins with `!` is something that should
not have happened.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

KINDS = 10
"""A notification is of the kind of its number's last digit."""


class Wants(msgspec.Struct, frozen=True):
    """What a subscriber asks for: of these publishers, kinds from one up to another."""

    publishers: tuple[str, ...]
    kinds: tuple[int, int] = (0, KINDS)

    @property
    def filter(self) -> str:
        """The subscription's text."""
        whose = " OR ".join(f"publisher = '{each}'" for each in self.publishers)
        return f"kind >= {self.kinds[0]} AND kind < {self.kinds[1]} AND ({whose})"

    def of(
        self, publisher: str, numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    ) -> list[int]:
        """Return those numbers of a publisher that are asked for: by arithmetic, not by filter."""
        if publisher not in self.publishers:
            return []
        kinds = numbers % KINDS
        found: list[int] = numbers[(kinds >= self.kinds[0]) & (kinds < self.kinds[1])].tolist()
        return found


class Accepted(msgspec.Struct):
    """A publisher's log."""

    numbers: list[int] = []
    times: list[float] = []
    """When each was accepted."""

    notes: list[str] = []


class Got(msgspec.Struct):
    """A subscriber's log: numbers by publisher in the order in which they came, and when."""

    numbers: dict[str, list[int]] = {}
    times: dict[str, list[float]] = {}
    notes: list[str] = []


class Verdict(msgspec.Struct):
    """What the logs say of channels; `lost` and the others are counted for each subscriber."""

    accepted: int = 0
    expected: int = 0
    lost: int = 0
    twice: int = 0
    out_of_order: int = 0
    unasked: int = 0
    notes: list[str] = []
    """What clients were told that they should not have been."""

    @property
    def breaches(self) -> list[str]:
        """What is against the law; nothing where it was kept."""
        counts = {
            "lost": self.lost,
            "twice": self.twice,
            "out of order": self.out_of_order,
            "unasked": self.unasked,
        }
        return [f"{count:,} {what}" for what, count in counts.items() if count] + self.notes


def read_accepted(path: Path) -> Accepted:
    """Return what a publisher has written down."""
    log = Accepted()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("!"):
            log.notes.append(f"{path.stem}: {line[1:].strip()}")
            continue
        when, first, count = line.split()
        log.numbers += range(int(first), int(first) + int(count))
        log.times += [float(when)] * int(count)
    return log


def read_got(path: Path) -> Got:
    """Return what a subscriber has written down."""
    log = Got()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("!"):
            log.notes.append(f"{path.stem}: {line[1:].strip()}")
            continue
        when, publisher, number = line.split()
        log.numbers.setdefault(publisher, []).append(int(number))
        log.times.setdefault(publisher, []).append(float(when))
    return log


def judge(
    wants: Mapping[str, Wants], accepted: Mapping[str, Accepted], got: Mapping[str, Got]
) -> Verdict:
    """Compare what publishers were told was accepted with what each subscriber has got."""
    verdict = Verdict(accepted=sum(len(each.numbers) for each in accepted.values()))
    notes = [each.notes for each in accepted.values()] + [each.notes for each in got.values()]
    verdict.notes += chain.from_iterable(notes)
    for subscriber, wanted in wants.items():
        for publisher in accepted.keys() | got[subscriber].numbers.keys():
            said = accepted.get(publisher, Accepted()).numbers
            expected = wanted.of(publisher, np.array(said, dtype=np.int64))
            _compare(verdict, expected, got[subscriber].numbers.get(publisher, []))
    return verdict


def _compare(verdict: Verdict, expected: list[int], came: list[int]) -> None:
    asked, seen = set(expected), set[int]()
    highest = -1
    for number in came:
        if number not in asked:
            verdict.unasked += 1
        elif number in seen:
            verdict.twice += 1
        elif number < highest:
            verdict.out_of_order += 1
        seen.add(number)
        highest = max(highest, number)
    verdict.expected += len(expected)
    verdict.lost += len(asked - seen)


def longest_silences(got: Iterable[Got], start: float, end: float) -> list[float]:
    """Return how long each subscriber at most heard nothing of each publisher between two times.

    A silence counts, as a whole, for the time in which it ends.
    """
    found = []
    for each in got:
        for times in each.times.values():
            moments = np.array(times)
            first, last = np.searchsorted(moments, (start, end))
            steps = np.diff(moments[max(0, first - 1) : last])
            found.append(float(steps.max()) if len(steps) else 0.0)
    return found


def rate(times: Iterable[float], start: float, end: float) -> float:
    """Return how many of the times are between two, in a second."""
    return sum(start <= each < end for each in times) / (end - start)
