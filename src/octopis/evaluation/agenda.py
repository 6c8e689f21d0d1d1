"""Everything that an evaluation has to do, what of it is done, and how long the rest will take.

Each item is done when its result is on the disk, so an evaluation that is started again knows
where it was. Expected times are rough; they are corrected by how long things really take.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp
from pathlib import Path

from octopis.core.routing import Algorithm
from octopis.evaluation.experiments import Experiment, Point
from octopis.evaluation.folders import Folders
from octopis.pipeline.spark.progress import meanwhile
from octopis.scenario.plan import ScenarioPlan

_EVERY_S = 0.5
_TRUSTED_S = 60
"""For so long, expected times weigh more than measured ones."""

_IMS_PER_S = 300_000
_SLOWER = {Algorithm.SNR: 1.0, Algorithm.DNR: 1.3, Algorithm.BID: 1.6, Algorithm.TNR: 1.0}


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is."""

    stage: str
    done: int
    """Items of this stage."""
    total: int
    share: float
    """Of all that is expected to take time."""
    elapsed_s: float
    left_s: float


@dataclass(frozen=True)
class Item:
    """Something to do, and the file or folder that will be there then."""

    stage: str
    result: Path
    expected_s: float


OnProgress = Callable[[Progress], None]


class Agenda:
    """The items of an evaluation."""

    def __init__(self, items: list[Item]) -> None:
        self._items = items
        self._waiting = {item.result for item in items if not item.result.exists()}
        self._work_s = sum(item.expected_s for item in items if item.result in self._waiting)
        self._start = time.monotonic()

    def progress(self, stage: str) -> Progress:
        """Look what is done by now."""
        in_stage = [item for item in self._items if item.stage == stage]
        whole = sum(item.expected_s for item in self._items)
        left = sum(item.expected_s for item in self._items if not item.result.exists())
        elapsed_s = time.monotonic() - self._start
        done_s = max(0.0, self._work_s - left)  # somebody may have removed what was there at first
        # While little is done, what was expected counts; later, what was measured.
        pace = (elapsed_s + _TRUSTED_S) / (done_s + _TRUSTED_S)
        return Progress(
            stage,
            sum(item.result.exists() for item in in_stage),
            len(in_stage),
            1 - left / whole,
            elapsed_s,
            left * pace,
        )

    @contextmanager
    def stage(self, stage: str, on_progress: OnProgress) -> Iterator[None]:
        """Tell `on_progress` now, and a few times a second, how far the work of a stage is."""

        def tell() -> None:
            on_progress(self.progress(stage))

        tell()
        with meanwhile(tell, _EVERY_S):
            yield
        tell()


def run_s(plan: ScenarioPlan, algorithm: Algorithm) -> float:
    """Return about how long a simulation takes on one core."""
    brokers = len(plan.topology.scot.brokers)
    wanted = brokers * (1 - exp(-plan.selectivity * plan.subscribers / brokers))
    ims = plan.publishers * plan.notifications_each * wanted
    ims += plan.high_rate_notifications * plan.high_rate_publishers * brokers / 4
    ims += plan.subscribers * brokers * (5 if algorithm is Algorithm.BID else 1)
    return 0.4 + 3e-4 * plan.subscribers + ims * _SLOWER[algorithm] / _IMS_PER_S


def deliveries(plan: ScenarioPlan) -> float:
    """Return about how many deliveries a run of a plan makes."""
    regular = plan.publishers * plan.notifications_each * plan.selectivity * plan.subscribers
    high_rate = plan.high_rate_notifications * plan.high_rate_publishers
    return regular + high_rate * max(5, plan.subscribers / 500)


def metrics_s(points: list[Point]) -> float:
    """Return about how long it takes to measure a group of runs on two cores."""
    rows = sum(deliveries(point.plan) * len(point.algorithms) for point in points)
    return 6 + rows * (2.4e-6 if points[0].experiment is Experiment.BURST else 1.0e-6)


def items(
    folders: Folders,
    plans: list[ScenarioPlan],
    truths: list[ScenarioPlan],
    groups: dict[str, list[Point]],
) -> list[Item]:
    """Return everything that there is to do."""
    scenarios = [
        Item("scenarios", folders.scenario(plan.name), 2 + 2e-5 * _published(plan))
        for plan in plans
    ]
    truth = [
        Item("ground truth", folders.truth(plan.name), 0.8 + 5e-7 * deliveries(plan))
        for plan in truths
    ]
    simulations = [
        Item(
            "simulations",
            folders.trace(run_name(point, algorithm)),
            run_s(point.plan, algorithm) / 1.8,
        )
        for points in groups.values()
        for point in points
        for algorithm in point.algorithms
    ]
    metrics = [
        Item("metrics", folders.metrics(group), metrics_s(points))
        for group, points in groups.items()
    ]
    quotes, report = Item("quotes", folders.quotes, 10), Item("report", folders.page, 15)
    return [quotes, *scenarios, *truth, *simulations, *metrics, report]


def _published(plan: ScenarioPlan) -> int:
    return plan.publishers * plan.notifications_each


def run_name(point: Point, algorithm: Algorithm) -> str:
    """Return what the run of a point under an algorithm is called."""
    return f"{point.name}-{algorithm.value}"
