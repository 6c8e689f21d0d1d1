"""The tables of a report, as they stand on the page and as CSV files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv

from octopis.core.routing import Algorithm
from octopis.evaluation.claims import Outcome, ratio
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures

BID, SNR, DNR, TNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR, Algorithm.TNR
DELAY, IMS, QUEUE = "notification_delay_mean_ns", "notification_ims", "high_rate_queue_mean"


class _Column(NamedTuple):
    """A column of the sensitivity table: by how many percent a metric of one is less."""

    group: str
    """What stands above it and its neighbours on the page; with its own title it says all."""
    title: str
    metric: str
    in_burst: bool
    ours: Algorithm
    theirs: Algorithm

    @property
    def name(self) -> str:
        """The whole of it, for files."""
        if self.group.startswith(","):
            return self.title + self.group
        return f"{self.group} {self.title}"


_SENSITIVE = (
    _Column(
        ", SNR against BID", "subscription delay", "subscription_delay_mean_ns", False, SNR, BID
    ),
    _Column(", SNR against BID", "tree length", "tree_length_mean", False, SNR, BID),
    _Column(", SNR against BID", "notification delay", DELAY, False, SNR, BID),
    _Column(", SNR against BID", "notification IMs", IMS, False, SNR, BID),
    _Column(", TNR against BID", "notification delay", DELAY, False, TNR, BID),
    _Column(", TNR against BID", "notification IMs", IMS, False, TNR, BID),
    _Column("burst: delay, DNR", "against SNR", DELAY, True, DNR, SNR),
    _Column("burst: delay, DNR", "against BID", DELAY, True, DNR, BID),
    _Column("burst: queues, DNR", "against SNR", QUEUE, True, DNR, SNR),
    _Column("burst: queues, DNR", "against BID", QUEUE, True, DNR, BID),
    _Column("burst: delay, TNR", "against DNR", DELAY, True, TNR, DNR),
)


@dataclass(frozen=True)
class Sensitivity:
    """The sensitivity table: how many percent less, for each variation."""

    columns: tuple[str, ...]
    """Each says all by itself."""
    groups: tuple[tuple[str, int], ...]
    """What several columns have in common, and how many."""
    titles: tuple[str, ...]
    """What then is left to say of each."""
    rows: list[tuple[str, list[float]]]


def sensitivity(measures: Measures) -> Sensitivity:
    """Work the sensitivity table out."""
    runs = measures.of(Experiment.SENSITIVITY)
    sizes = sorted({run.point.x for run in runs})
    names = list(dict.fromkeys(point.variation for point in _in_order(measures)))
    rows = [
        (
            name,
            [
                100 * (1 - _ratio(measures, each, sizes[-1 if each.in_burst else 0], name))
                for each in _SENSITIVE
            ],
        )
        for name in names
    ]
    groups = Counter(each.group.removeprefix(", ") for each in _SENSITIVE)
    return Sensitivity(
        tuple(each.name for each in _SENSITIVE),
        tuple(groups.items()),
        tuple(each.title for each in _SENSITIVE),
        rows,
    )


def _ratio(measures: Measures, column: _Column, x: int, variation: str) -> float:
    _, _, metric, _, ours, theirs = column
    return ratio(
        measures, metric, Experiment.SENSITIVITY, (ours,), theirs, x=x, variation=variation
    )


def _in_order(measures: Measures) -> list[Any]:
    runs = [run.point for run in measures.all if run.point.experiment is Experiment.SENSITIVITY]
    return sorted(runs, key=lambda point: point.name)


def shown(value: float | None, unit: str) -> str:
    """Return a claim's figure as people read it."""
    if value is None:
        return "none"
    if unit.startswith("times"):  # where 1 is the bound, 0.996 is not yet 1.00
        return rounded(value, 3)
    digits = 0 if unit == "bursts" else 2 if abs(value) < 1 else 1
    return rounded(value, digits)


def rounded(value: float, digits: int = 1) -> str:
    """Return a number with so many digits; nothing is never below 0."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def value_over_seeds(outcome: Outcome) -> str:
    """Return the least and the most over the seeds, if there are several."""
    if len(outcome.values) < 2:
        return ""
    unit = outcome.claim.unit
    return f"{shown(min(outcome.values), unit)} to {shown(max(outcome.values), unit)}"


def notes_of(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Number the reasons; several claims may have the same."""
    reasons = [outcome.reason for outcome in outcomes if outcome.reason]
    return {reason: number for number, reason in enumerate(dict.fromkeys(reasons), 1)}


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write rows as a CSV file."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    table = pa.table({name: pa.array(each) for name, each in zip(columns, values, strict=True)})
    path.parent.mkdir(parents=True, exist_ok=True)
    pa_csv.write_csv(table, path)


def run_rows(measures: Measures) -> tuple[list[str], list[list[Any]]]:
    """Return every run with everything that was measured of it."""
    names = sorted({name for run in measures.all for name in run.values} - {"run", "algorithm"})
    columns = ["experiment", "x", "variation", "algorithm", "equals_truth", "stabilised_s", *names]
    rows = [
        [
            run.point.experiment.value,
            run.point.x,
            run.point.variation,
            run.algorithm.value,
            run.is_exact,
            run.series.stabilised_s if run.series is not None else None,
            *(run.values.get(name) for name in names),
        ]
        for run in measures.all
    ]
    return columns, rows


def series_rows(measures: Measures) -> tuple[list[str], list[list[Any]]]:
    """Return the points of Figure 11."""
    columns = ["scenario", "algorithm", "end_s", "delay_max_s"]
    rows = [
        [run.point.name, run.algorithm.value, end, delay]
        for run in measures.of(Experiment.BURST)
        if run.series is not None
        for end, delay in zip(run.series.end_s, run.series.delay_max_s, strict=True)
    ]
    return columns, rows
