"""What clients of durable brokers have written down, each on its own, and what the law says to it.

A publisher's log has a line for each request that was answered: the first number and how many; a
line with `?` in front is of those whose fate the publisher was not told. Every life of a
subscriber has a log of its own: of each notification the position, whose it is, and its number, in
the order in which they were taken. Nobody else had a hand in either.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from octopis.benchmarks.channels.logs import Wants

TAKEN = np.dtype([("position", "<u8"), ("publisher", "<u4"), ("number", "<u4")])
Numbers = npt.NDArray[np.int64]
_Taken = npt.NDArray[Any]


class Said(msgspec.Struct):
    """What a publisher was told: numbers that were accepted, and those that may have been."""

    accepted: Numbers
    unknown: Numbers


class DurableVerdict(msgspec.Struct):
    """What the logs say; `lost` and the others are counted for each subscriber."""

    accepted: int = 0
    unknown: int = 0
    """Publications whose publishers were not told what became of them."""

    expected: int = 0
    lost: int = 0
    twice: int = 0
    out_of_order: int = 0
    unasked: int = 0
    changed: int = 0
    """Positions at which something else was taken another time."""

    skipped: int = 0
    """Positions that were left out."""

    again: int = 0
    """What was taken again after a death, as it had not been acknowledged: that is no fault."""

    notes: list[str] = []

    @property
    def breaches(self) -> list[str]:
        """What is against the law; nothing where it was kept."""
        counts = {
            "lost": self.lost,
            "twice": self.twice,
            "out of order": self.out_of_order,
            "unasked": self.unasked,
            "positions changed": self.changed,
            "positions skipped": self.skipped,
        }
        return [f"{count:,} {what}" for what, count in counts.items() if count] + self.notes


def read_said(path: Path) -> Said:
    """Return what a publisher has written down."""
    found: dict[bool, list[Numbers]] = {True: [], False: []}
    for line in path.read_text(encoding="utf-8").splitlines():
        first, count = map(int, line.removeprefix("?").split())
        found[not line.startswith("?")].append(np.arange(first, first + count))
    none = [np.array([], np.int64)]
    return Said(np.concatenate(none + found[True]), np.concatenate(none + found[False]))


def read_lives(folder: Path, subscriber: str) -> list[_Taken]:
    """Return what each life of a subscriber has taken; the last of a life may be cut short."""
    lives = []
    for path in sorted(folder.glob(f"{subscriber}.*.taken")):
        data = path.read_bytes()
        lives.append(np.frombuffer(data[: len(data) // TAKEN.itemsize * TAKEN.itemsize], TAKEN))
    return lives


def judge(
    wants: Mapping[str, Wants], said: Mapping[str, Said], lives: Mapping[str, Sequence[_Taken]]
) -> DurableVerdict:
    """Compare what publishers were told with what each subscriber has taken, in all its lives."""
    verdict = DurableVerdict(
        accepted=sum(len(each.accepted) for each in said.values()),
        unknown=sum(len(each.unknown) for each in said.values()),
    )
    for subscriber, wanted in wants.items():
        whole = _joined(verdict, lives[subscriber])
        for index, (publisher, told) in enumerate(said.items()):
            numbers = whole["number"][whole["publisher"] == index].astype(np.int64)
            due = np.array(wanted.of(publisher, told.accepted), np.int64)
            maybe = np.array(wanted.of(publisher, told.unknown), np.int64)
            _compare(verdict, numbers, due, maybe)
    return verdict


def _joined(verdict: DurableVerdict, lives: Iterable[_Taken]) -> _Taken:
    """Return what was at each position, in their order, and note what differs between lives."""
    many = list(lives)
    for life in many:
        steps = np.diff(life["position"].astype(np.int64))
        verdict.out_of_order += int((steps <= 0).sum())
    together = np.concatenate([np.array([], TAKEN), *many])
    together = together[np.argsort(together["position"], kind="stable")]
    positions, firsts = np.unique(together["position"], return_index=True)
    if len(positions):
        verdict.skipped += int(positions[-1]) - len(positions)
    whole = together[firsts]
    places = np.searchsorted(positions, together["position"])
    differs = together != whole[places]
    verdict.changed += len(np.unique(together["position"][differs]))
    verdict.again += len(together) - len(whole)
    return whole


def _compare(verdict: DurableVerdict, came: Numbers, due: Numbers, maybe: Numbers) -> None:
    different = np.unique(came)
    verdict.expected += len(due)
    verdict.twice += len(came) - len(different)
    verdict.out_of_order += int((np.diff(came) < 0).sum())
    verdict.lost += len(np.setdiff1d(due, different))
    verdict.unasked += len(np.setdiff1d(different, np.union1d(due, maybe)))
