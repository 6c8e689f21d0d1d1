"""Runs the trials of channels, each on a fresh overlay, one after the other."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

import uvloop

from octopis.benchmarks.channels import faults, overload, stalled
from octopis.benchmarks.channels.faults import FaultsFound
from octopis.benchmarks.channels.overload import OverloadFound
from octopis.benchmarks.channels.stalled import StalledFound
from octopis.broker.settings import ClientPolicy
from octopis.logs import without_warnings

Found = FaultsFound | OverloadFound | StalledFound


class Trial(Enum):
    """What is tried."""

    FAULTS = "faults"
    OVERLOAD = "overload"
    STALLED = "stalled"


def run(
    trials: Sequence[Trial],
    plan: faults.Plan,
    overload_s: float,
    logs: Path | None,
    tell: Callable[[str], None],
) -> Iterator[Found]:
    """Yield what came of each trial; all leave their logs in folders of `logs`, if it is given."""
    for trial in trials:
        if trial is Trial.FAULTS:
            with _folder(logs, "faults") as folder:
                yield uvloop.run(faults.run(plan, folder, tell))
        elif trial is Trial.OVERLOAD:
            with _folder(logs, "overload") as folder:
                heavy = overload.Plan(overlay=plan.overlay, seconds=overload_s)
                yield uvloop.run(overload.run(heavy, folder, tell))
        else:
            for policy in (ClientPolicy.DROP_OLDEST, ClientPolicy.PAUSE):
                with _folder(logs, f"stalled-{policy.value}") as folder:
                    lazy = stalled.Plan(overlay=plan.overlay, policy=policy)
                    yield uvloop.run(stalled.run(lazy, folder, tell))


@contextmanager
def _folder(logs: Path | None, name: str) -> Iterator[Path]:
    # That brokers cannot be reached is what is tried: nobody has to be told.
    with without_warnings("octopis.client"):
        if logs is not None:
            (logs / name).mkdir(parents=True, exist_ok=True)
            yield logs / name
            return
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
