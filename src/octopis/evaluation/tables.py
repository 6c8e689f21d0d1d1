"""The tables of a report, as they stand on the page and as CSV files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from octopis.core.routing import Algorithm
from octopis.evaluation.claims import Outcome, ratio
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures

BID, SNR, DNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR

_SENSITIVE: tuple[tuple[str, str, bool, Algorithm, Algorithm], ...] = (
    ("subscription delay, SNR against BID", "subscription_delay_mean_ns", False, SNR, BID),
    ("tree length, SNR against BID", "tree_length_mean", False, SNR, BID),
    ("notification delay, SNR against BID", "notification_delay_mean_ns", False, SNR, BID),
    ("notification IMs, SNR against BID", "notification_ims", False, SNR, BID),
    ("burst: delay, DNR against SNR", "notification_delay_mean_ns", True, DNR, SNR),
    ("burst: delay, DNR against BID", "notification_delay_mean_ns", True, DNR, BID),
    ("burst: queues, DNR against SNR", "high_rate_queue_mean", True, DNR, SNR),
    ("burst: queues, DNR against BID", "high_rate_queue_mean", True, DNR, BID),
)
"""Columns of the sensitivity table: what, the metric, in the burst or not, and who against whom."""


@dataclass(frozen=True)
class Sensitivity:
    """The sensitivity table: how many percent less, for each variation."""

    columns: tuple[str, ...]
    rows: list[tuple[str, list[float]]]


def sensitivity(measures: Measures) -> Sensitivity:
    """Work the sensitivity table out."""
    runs = measures.of(Experiment.SENSITIVITY)
    sizes = sorted({run.point.x for run in runs})
    names = list(dict.fromkeys(point.variation for point in _in_order(measures)))
    rows = []
    for name in names:
        values = [
            100
            * (
                1
                - ratio(
                    measures,
                    metric,
                    Experiment.SENSITIVITY,
                    (ours,),
                    theirs,
                    x=sizes[-1] if in_burst else sizes[0],
                    variation=name,
                )
            )
            for _, metric, in_burst, ours, theirs in _SENSITIVE
        ]
        rows.append((name, values))
    return Sensitivity(tuple(title for title, *_ in _SENSITIVE), rows)


def _in_order(measures: Measures) -> list[Any]:
    runs = [run.point for run in measures.all if run.point.experiment is Experiment.SENSITIVITY]
    return sorted(runs, key=lambda point: point.name)


def shown(value: float | None, unit: str) -> str:
    """Return a claim's figure as people read it."""
    if value is None:
        return "none"
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
