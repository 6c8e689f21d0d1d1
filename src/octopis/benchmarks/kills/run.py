"""Kills brokers of a live overlay and looks at what the clients of the others notice.

Publishers at living brokers publish steadily meanwhile, and a subscriber at every broker wants all
of it. An interruption is the longest time in which a subscriber got nothing of one publisher, less
the time between two of its publications.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import uvloop

from octopis.benchmarks.kills.brokers import MortalBrokers, mortal_brokers
from octopis.benchmarks.kills.witnesses import Witnesses, spread, witnesses_at
from octopis.benchmarks.live.roles import overlay_named
from octopis.core.model import BrokerId
from octopis.logs import without_warnings

PUBLISHERS = 4
PERIOD_S = 0.02
AFTER_S = 2.0
_BEFORE_S = 0.2
_SILENT_S = 8.0
"""So long they stand still: neighbours notice within 5 s."""

_COME_S = 5.0


@dataclass(frozen=True, slots=True)
class Blow:
    """Brokers that die together; `is_silent`: they stand still, and their sockets stay open."""

    brokers: tuple[BrokerId, ...]
    is_silent: bool = False

    @property
    def what(self) -> str:
        """What happens to how many."""
        kind = "stands still" if self.is_silent else "killed"
        return f"{len(self.brokers)} {kind}"


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What others noticed of a blow."""

    what: str
    blow: str
    published: int
    expected: int
    """How often what was published should have come, at living brokers."""

    lost: int
    duplicates: int
    cut_off: int
    """Subscribers that did not get the last of a publisher, counted for each publisher."""

    interruptions_s: list[float]
    """The longest of each subscriber at a living broker."""

    equal_s: float
    """From the restart until all brokers have the same table again."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What others noticed of all blows of a kind."""

    what: str
    times: int
    p50_s: float
    p99_s: float
    max_s: float
    lost: int
    expected: int
    duplicates: int
    cut_off: int
    equal_s_max: float


def run(
    overlay: str,
    algorithm: str,
    silent: int,
    pairs: int | None,
    tell: Callable[[Aftermath], None],
) -> list[Aftermath]:
    """Return the aftermath of every single kill, of some that stand still, and of pairs.

    `tell` is called with each of them at once.
    """
    brokers = overlay_named(overlay).brokers
    two = list(combinations(brokers, 2))
    chosen = two if pairs is None else [two[i * len(two) // pairs] for i in range(pairs)]
    blows = [Blow((broker,)) for broker in brokers]
    blows += [Blow((broker,), is_silent=True) for broker in spread(brokers, silent, 1)]
    blows += map(Blow, chosen)

    async def work(log: Path) -> list[Aftermath]:
        found = []
        async for each in strike(overlay, algorithm, blows, log):
            tell(each)
            found.append(each)
        return found

    # That clients lose their connections is what is measured: nobody has to be told.
    with without_warnings("octopis.client"), tempfile.TemporaryDirectory() as folder:
        return uvloop.run(work(Path(folder) / "log"))


def summed(found: Sequence[Aftermath]) -> list[Sum]:
    """Return the sums for each kind of blow."""
    sums = []
    for what in dict.fromkeys(each.what for each in found):
        these = [each for each in found if each.what == what]
        longest = [s for each in these for s in each.interruptions_s]
        p50_s, p99_s = np.percentile(longest, (50, 99)) if longest else (0.0, 0.0)
        sums.append(
            Sum(
                what=what,
                times=len(these),
                p50_s=float(p50_s),
                p99_s=float(p99_s),
                max_s=max(longest, default=0.0),
                lost=sum(each.lost for each in these),
                expected=sum(each.expected for each in these),
                duplicates=sum(each.duplicates for each in these),
                cut_off=sum(each.cut_off for each in these),
                equal_s_max=max(each.equal_s for each in these),
            )
        )
    return sums


async def strike(  # noqa: PLR0913 - named options of a run
    overlay: str,
    algorithm: str,
    blows: Sequence[Blow],
    log: Path,
    *,
    after_s: float = AFTER_S,
    limits: dict[str, float] | None = None,
) -> AsyncIterator[Aftermath]:
    """Run an overlay, and yield the aftermath of each blow in turn; the dead are back by then."""
    async with (
        mortal_brokers(overlay, algorithm, log, {"limits": limits or {}}) as brokers,
        witnesses_at(brokers.addresses) as witnesses,
    ):
        await witnesses.agree()
        for number, blow in enumerate(blows):
            pause_s = _SILENT_S if blow.is_silent else after_s
            yield await _strike(brokers, witnesses, blow, number, pause_s)


async def _strike(
    brokers: MortalBrokers, witnesses: Witnesses, blow: Blow, number: int, after_s: float
) -> Aftermath:
    living = [broker for broker in brokers.scot.brokers if broker not in blow.brokers]
    sources = spread(living, min(PUBLISHERS, len(living)), number)
    witnesses.forget()
    stop = asyncio.Event()
    publishing = {
        source: asyncio.create_task(witnesses[source].publish(stop, PERIOD_S)) for source in sources
    }
    await asyncio.sleep(_BEFORE_S)
    hit, heal = (brokers.stop, brokers.go_on) if blow.is_silent else (brokers.kill, brokers.start)
    for broker in blow.brokers:
        await hit(broker)
    await asyncio.sleep(after_s)
    stop.set()
    published = {source: await task for source, task in publishing.items()}
    await witnesses.has_come(published, living, _COME_S)
    gaps = [_longest_gap_s(witnesses, broker, published) for broker in living]
    for broker in blow.brokers:
        await heal(broker)
    equal_s = await witnesses.agree()
    numbers = {source.short: each for source, each in published.items()}
    count = sum(map(len, numbers.values()))
    got = [
        (broker, source, each)
        for broker in living
        for source, each, _ in witnesses[broker].got
        if each in numbers.get(source, ())  # a broker that stood still may get older ones now
    ]
    once = set(got)
    return Aftermath(
        what=blow.what,
        blow=" ".join(broker.short for broker in blow.brokers),
        published=count,
        expected=count * len(living),
        lost=count * len(living) - len(once),
        duplicates=len(got) - len(once),
        cut_off=sum(
            (broker, source, each[-1]) not in once
            for broker in living
            for source, each in numbers.items()
        ),
        interruptions_s=[max(0.0, gap - PERIOD_S) for gap in gaps],
        equal_s=equal_s,
    )


def _longest_gap_s(
    witnesses: Witnesses, broker: BrokerId, published: dict[BrokerId, range]
) -> float:
    longest = 0.0
    for source, numbers in published.items():
        times = sorted(
            when
            for each, number, when in witnesses[broker].got
            if each == source.short and number in numbers
        )
        longest = max([longest, *(later - earlier for earlier, later in pairwise(times))])
    return longest
