"""A picture of runs: how long their deliveries took, and how long their queues were."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration
from octopis.report.pictures import LOOKS, RC, LineStyle
from octopis.trace import RunSummary
from octopis.trace.delays import Nanoseconds, read_delays, read_tables
from octopis.trace.runs import run_summary

_INTERVALS = 120
"""Time is cut into so many parts, each with its longest delay."""

_POINTS = 2_000
"""A line of shares has so many points at most: nobody sees more, and files stay small."""

_LINES = ("-", "--", "-.", ":")
_COLOURS = ("#1f6fb4", "#c8500a", "#0b8a63", "#7b4fa3", "#8a6d00", "#b0306a", "#444b55")


@dataclass(frozen=True)
class PlottedRun:
    """What is drawn of a run. Times are seconds since notifications began."""

    name: str
    algorithm: Algorithm
    delivered_s: npt.NDArray[np.float64]
    delays_ms: npt.NDArray[np.float64]
    queues: tuple[npt.NDArray[np.float64], Nanoseconds] | None
    """The longest queue of each window, where the trace has that."""
    longest: Nanoseconds
    """The longest length of each queue."""


def read_run(trace: Path) -> PlottedRun:
    """Read what is drawn of a run; raise InvalidConfiguration where it does not tell."""
    summary = run_summary(trace)
    delays = read_delays(trace)
    if delays is None or not len(delays[0]):
        raise InvalidConfiguration(
            f"{trace} tells of no deliveries: run it at level deliveries or full"
            if delays is None
            else f"nothing was delivered in {trace}: there is nothing to draw"
        )
    delivered_ns, delays_ns = delays
    begin_ns = _begin_ns(summary, delivered_ns, delays_ns)
    links = read_tables(trace, "links", ["queue_length_max"])
    longest = links.column(0).to_numpy() if links is not None else np.zeros(0, np.int64)
    return PlottedRun(
        trace.resolve().name,
        Algorithm(summary.algorithm),
        (delivered_ns - begin_ns) / 1e9,
        delays_ns / 1e6,
        _longest_by_window(trace, begin_ns),
        np.sort(longest)[::-1],
    )


def draw_runs(traces: Sequence[Path]) -> Figure:
    """Return a picture of runs side by side; raise InvalidConfiguration where one tells nothing."""
    runs = [read_run(trace) for trace in traces]
    with mpl.rc_context(RC):
        figure = Figure(figsize=(12.6, 4.2), layout="constrained")
        shares, times, queues = figure.subplots(1, 3)
        for run, look in zip(runs, _looks(runs), strict=True):
            line: dict[str, Any] = {"color": look.colour, "linestyle": look.line}
            shares.plot(*_shares(run), label=look.label, drawstyle="steps-post", **line)
            times.plot(*_longest_delays(run), **line)
        _delay_axis(shares, "x")
        _delay_axis(times, "y")
        _name(shares, "(a) Delays", "delay since the intended time", "share of deliveries within")
        shares.set_ylim(0, 1.02)
        shares.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
        _name(times, "(b) Delays over time", "time of delivery (s)", "longest delay")
        _draw_queues(queues, runs)
        figure.legend(loc="outside upper center", ncols=min(4, len(runs)))
    return figure


def _draw_queues(panel: Axes, runs: Sequence[PlottedRun]) -> None:
    """Draw queues over time where all traces have windows; else each queue's longest length."""
    over_time = all(run.queues is not None for run in runs)
    for run, look in zip(runs, _looks(runs), strict=True):
        line: dict[str, Any] = {"color": look.colour, "linestyle": look.line}
        if over_time and run.queues is not None:
            panel.plot(*run.queues, **line)
        else:
            panel.plot(np.arange(1, len(run.longest) + 1), run.longest, **line)
    if over_time:
        _name(panel, "(c) Queues over time", "time (s)", "longest queue (messages)")
    else:
        _name(panel, "(c) Queues", "queues, the longest first", "longest length (messages)")
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _looks(runs: Sequence[PlottedRun]) -> Iterator[LineStyle]:
    """Give each algorithm its look, or each run one of its own where two share an algorithm."""
    algorithms = [run.algorithm for run in runs]
    names = [run.name for run in runs]
    for number, run in enumerate(runs):
        twice = names.count(run.name) > 1
        label = f"{run.name} ({number + 1})" if twice else run.name
        if len(set(algorithms)) == len(runs) and run.algorithm in LOOKS:
            yield LOOKS[run.algorithm]._replace(label=label)
        else:
            colour = _COLOURS[number % len(_COLOURS)]
            yield LineStyle(label, colour, "", _LINES[number % len(_LINES)])


def _shares(run: PlottedRun) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    shares = np.linspace(0, 1, min(_POINTS, len(run.delays_ms)) + 1)[1:]
    values = np.quantile(run.delays_ms, shares, method="inverted_cdf")
    return np.maximum(values, 0.001), shares


def _longest_delays(run: PlottedRun) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the longest delay of each interval in which anything was delivered."""
    first, last = run.delivered_s.min(), run.delivered_s.max()
    width = max((last - first) / _INTERVALS, 1e-9)
    places = np.minimum(((run.delivered_s - first) / width).astype(np.int64), _INTERVALS - 1)
    longest = np.zeros(_INTERVALS)
    np.maximum.at(longest, places, run.delays_ms)
    used = np.unique(places)
    return first + (used + 0.5) * width, np.maximum(longest[used], 0.001)


def _longest_by_window(
    trace: Path, begin_ns: int
) -> tuple[npt.NDArray[np.float64], Nanoseconds] | None:
    windows = read_tables(trace, "queues", ["window_end_ns", "queue_length"])
    if windows is None or not len(windows):
        return None
    by_window = windows.group_by("window_end_ns").aggregate([("queue_length", "max")])
    ordered = by_window.sort_by("window_end_ns")
    ends = (ordered.column("window_end_ns").to_numpy() - begin_ns) / 1e9
    lengths = ordered.column("queue_length_max").to_numpy()
    return ends[ends >= 0], lengths[ends >= 0]


def _begin_ns(summary: RunSummary, delivered_ns: Nanoseconds, delays_ns: Nanoseconds) -> int:
    """Return when notifications began; of a live run, the first of them tells."""
    if summary.source == "live":
        return int((delivered_ns - delays_ns).min())
    return summary.begin_ns


def _delay_axis(panel: Axes, which: str) -> None:
    axis = panel.xaxis if which == "x" else panel.yaxis
    (panel.set_xscale if which == "x" else panel.set_yscale)("log")
    axis.set_major_formatter(FuncFormatter(_shown_ms))


def _shown_ms(milliseconds: float, _position: object) -> str:
    if milliseconds < 1:
        return f"{milliseconds * 1000:g} µs"
    return f"{milliseconds:g} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,g} s"


def _name(panel: Axes, title: str, x: str, y: str) -> None:
    panel.set_title(title)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
