"""The paper's Figures 9, 10 and 11 from our runs, and two of our own."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter

from octopis.core.routing import Algorithm
from octopis.evaluation.experiments import ALL, RATES, Experiment
from octopis.evaluation.measures import Measure, Measures, Series
from octopis.evaluation.reasons import leads
from octopis.report.pictures import LOOKS, RC

MS = 1e-6
"""Milliseconds of a nanosecond."""

SUBSCRIBERS = "subscribers"
PUBLISHERS = "publishers"
IMS = "IMs"

_SEEN_APART = 0.01
"""Lines that nowhere differ by more than this share of the axis lie on each other."""


class _Stroke(NamedTuple):
    """How thick a line is, and how large its markers."""

    width: float
    marker_size: float
    is_open: bool


# Lines often lie on each other: what is drawn later is thinner, with larger and open markers.
_STROKES = {
    Algorithm.BID: _Stroke(2.4, 5, is_open=False),
    Algorithm.SNR: _Stroke(2.4, 5, is_open=False),
    Algorithm.DNR: _Stroke(1.2, 9, is_open=True),
    Algorithm.TNR: _Stroke(1.8, 9.5, is_open=True),
}


def all_figures(measures: Measures) -> dict[str, tuple[Figure, str]]:
    """Return each figure by its file's name, with its caption."""
    with mpl.rc_context(RC):
        drawn = {
            "figure-9": (
                figure_9(measures),
                "Figure 9: more subscribers. (a) inter-broker messages (IMs) of the subscription "
                "broadcast, (b) time until the last broker has stored a subscription, (c) time "
                "from publication to delivery, (d) IMs of notification routing.",
            ),
            "figure-10": (
                figure_10(measures),
                "Figure 10: (a) time spent matching, summed over the brokers on a notification's "
                "way, with more subscribers; (b) delay, (c) IMs and (d) time spent matching with "
                "more publishers.",
            ),
            "figure-11": (
                figure_11(measures),
                "Figure 11: stability. Each point is the longest delay of 1,000 deliveries in the "
                "order they came, while a high-rate publisher (HRP) sends at three rates. The "
                "thin grey line is 1 s.",
            ),
            "several-hrps": (
                several(measures),
                "Several high-rate publishers at once: mean notification delay, and by how much "
                "that of DNR and TNR is less than SNR's.",
            ),
        }
    return {
        name: (figure, " ".join(filter(None, (caption, coinciding(figure)))))
        for name, (figure, caption) in drawn.items()
    }


def coinciding(figure: Figure) -> str:
    """Say in which panels which lines cannot be told apart, if there are any."""
    panels: dict[tuple[str, ...], list[str]] = {}
    for panel in figure.axes:
        for together in _lying_together(panel):
            panels.setdefault(together, []).append(panel.get_title(loc="left")[:3])
    said: list[str] = []
    for labels, letters in panels.items():
        where = "all panels" if len(letters) == len(figure.axes) else _listed(letters)
        said.append(f"{_listed(labels)} {'' if said else 'coincide '}in {where}")
    return f"{'; '.join(said)}: one line lies on the other." if said else ""


def _lying_together(panel: Axes) -> list[tuple[str, ...]]:
    """Return the algorithms whose lines lie on each other: two or more each time."""
    low, high = panel.get_ylim()
    bound = _SEEN_APART * (high - low)
    groups: list[list[Line2D]] = []
    shown = {line.get_label(): line for line in panel.lines}
    for line in (shown[look.label] for look in LOOKS.values() if look.label in shown):
        for group in groups:
            if _is_near(group[0], line, bound):
                group.append(line)
                break
        else:
            groups.append([line])
    return [tuple(str(each.get_label()) for each in group) for group in groups if len(group) > 1]


def _is_near(line: Line2D, other: Line2D, bound: float) -> bool:
    (x, y), (other_x, other_y) = (np.asarray(each.get_data()) for each in (line, other))
    return np.array_equal(x, other_x) and bool(np.all(np.abs(y - other_y) <= bound))


def _listed(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def figure_9(measures: Measures) -> Figure:
    """Draw subscriber scalability."""
    figure, panels = _panels(2, 2)
    lines = _lines(measures, Experiment.SUBSCRIBERS)
    _panel(panels[0], "(a) IMs of subscription broadcast", SUBSCRIBERS, IMS)
    lines(panels[0], lambda run: run["subscription_ims"])
    _panel(panels[1], "(b) Subscription delay", SUBSCRIBERS, "mean delay (ms)")
    lines(panels[1], lambda run: run["subscription_delay_mean_ns"] * MS)
    _panel(panels[2], "(c) Notification delay", SUBSCRIBERS, "mean delay (ms)")
    lines(panels[2], lambda run: run["notification_delay_mean_ns"] * MS)
    _panel(panels[3], "(d) IMs of notification routing", SUBSCRIBERS, IMS)
    lines(panels[3], lambda run: run["notification_ims"])
    return _with_legend(figure, panels[0])


def figure_10(measures: Measures) -> Figure:
    """Draw matching delay, and publisher scalability."""
    figure, panels = _panels(2, 2)
    _panel(panels[0], "(a) Matching delay", SUBSCRIBERS, "mean per notification (ms)")
    lines = _lines(measures, Experiment.SUBSCRIBERS)
    lines(panels[0], lambda run: run["matching_delay_mean_ns"] * MS)
    lines = _lines(measures, Experiment.PUBLISHERS)
    _panel(panels[1], "(b) Notification delay", PUBLISHERS, "mean delay (ms)")
    lines(panels[1], lambda run: run["notification_delay_mean_ns"] * MS)
    _panel(panels[2], "(c) IMs of notification routing", PUBLISHERS, IMS)
    lines(panels[2], lambda run: run["notification_ims"])
    _panel(panels[3], "(d) Matching delay", PUBLISHERS, "mean per notification (ms)")
    lines(panels[3], lambda run: run["matching_delay_mean_ns"] * MS)
    return _with_legend(figure, panels[0])


def figure_11(measures: Measures) -> Figure:
    """Draw the stability series of the first seed; the claims table has the spread."""
    figure, panels = _panels(1, 3, height=3.6)
    seed = measures.seeds[0]
    runs = {rate: measures.of(Experiment.BURST, seed=seed, x=rate) for rate in RATES}
    series = [run.series for found in runs.values() for run in found if run.series is not None]
    until = 1.15 * _interesting_s(series)
    for panel, letter, rate in zip(panels, "abc", RATES, strict=True):
        title = f"({letter}) HRP at {rate // 1000}K a minute"
        label = "longest delay of 1,000 (s)" if rate == RATES[0] else ""
        _panel(panel, title, "time of delivery (s)", label)
        for run in sorted(runs[rate], key=lambda run: ALL.index(run.algorithm)):
            if run.series is not None:
                _series(panel, run.algorithm, run.series, until)
        panel.axhline(1, color="#9aa3ad", linewidth=0.9)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.set_xlim(0, until)
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    return _with_legend(figure, panels[0])


def several(measures: Measures) -> Figure:
    """Draw the delays with several high-rate publishers, and by how much SNR's is the longest."""
    figure, panels = _panels(1, 2, height=3.4)
    _panel(panels[0], "(a) Notification delay", "high-rate publishers", "mean delay (s)")
    for algorithm in (Algorithm.SNR, Algorithm.DNR, Algorithm.TNR):
        alone = measures.of(Experiment.BURST, algorithm, x=RATES[0])
        runs = [*alone, *measures.of(Experiment.SEVERAL, algorithm)]
        points = [(run.point.plan.high_rate_publishers, _delay_s(run)) for run in runs]
        _spread(panels[0], algorithm, points)
    _panel(panels[1], "(b) Lead over SNR", "high-rate publishers", "less delay (%)")
    for algorithm in (Algorithm.DNR, Algorithm.TNR):
        by_seed = [leads(measures, seed, algorithm) for seed in measures.seeds]
        _spread(panels[1], algorithm, [point for found in by_seed for point in found.items()])
    for panel in panels:
        panel.set_xticks(sorted(leads(measures, measures.seeds[0])))
        _show_zero(panel)
    return _with_legend(figure, panels[0])


def _panels(rows: int, columns: int, height: float = 6.4) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(9.6, height), layout="constrained")
    grid: Any = figure.subplots(rows, columns, squeeze=False)
    return figure, list(grid.ravel())


def _panel(panel: Axes, title: str, x: str, y: str) -> None:
    panel.set_title(title)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    # 500 thousand messages are 500k; half a millisecond is 0.5, not 500m, on an axis in ms.
    counts = EngFormatter(sep="") if y == IMS else FuncFormatter(lambda value, _: f"{value:,g}")
    panel.yaxis.set_major_formatter(counts)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _lines(
    measures: Measures, experiment: Experiment
) -> Callable[[Axes, Callable[[Measure], float]], None]:
    """Return what draws a value of an experiment's runs as one line for each algorithm."""

    def draw(panel: Axes, value: Callable[[Measure], float]) -> None:
        for algorithm in ALL:
            runs = measures.of(experiment, algorithm)
            _spread(panel, algorithm, [(run.point.x, value(run)) for run in runs])
        panel.set_xlim(left=0)
        _show_zero(panel)

    return draw


def _show_zero(panel: Axes) -> None:
    """Let the axis begin at 0, or go on below it where values do: a lead may be lost."""
    low, high = panel.dataLim.y0, panel.get_ylim()[1]
    panel.set_ylim(min(0.0, 1.12 * low), max(0.0, 1.12 * high))


def _spread(panel: Axes, algorithm: Algorithm, points: list[tuple[int, float]]) -> None:
    """Draw means over the seeds, and a band from the least to the most."""
    look, stroke = LOOKS[algorithm], _STROKES[algorithm]
    places = sorted({x for x, _ in points})
    values = [[y for x, y in points if x == place] for place in places]
    means = [sum(found) / len(found) for found in values]
    panel.plot(
        places,
        means,
        label=look.label,
        color=look.colour,
        linestyle=look.line,
        marker=look.marker,
        linewidth=stroke.width,
        markerfacecolor="none" if stroke.is_open else look.colour,
        markersize=stroke.marker_size,
        markeredgewidth=1.4,
        clip_on=False,  # a marker near 0 is whole, too
    )
    if any(len(found) > 1 for found in values):
        low, high = [min(found) for found in values], [max(found) for found in values]
        panel.fill_between(places, low, high, color=look.colour, alpha=0.18, linewidth=0)


def _series(panel: Axes, algorithm: Algorithm, series: Series, until: float) -> None:
    look = LOOKS[algorithm]
    count = sum(end <= until for end in series.end_s)
    ends, delays = series.end_s[:count], series.delay_max_s[:count]
    panel.plot(
        ends,
        delays,
        color=look.colour,
        linewidth=1.5 if look.line == ":" else 1.1,
        linestyle=look.line,
        marker=look.marker,
        markevery=max(1, count // 12),
        markersize=5,
        markerfacecolor="white",
        label=look.label,
        rasterized=True,  # tens of thousands of points would make the page too large
    )


def _interesting_s(series: list[Series]) -> float:
    """Return the time of the last late delivery, or of the last at all where none is late."""
    ends = [(each.stabilised_s, each.end_s[-1]) for each in series if each.end_s]
    late = max((end if stable is None else stable for stable, end in ends), default=0.0)
    return late or max((end for _, end in ends), default=1.0)


def _delay_s(run: Measure) -> float:
    return run["notification_delay_mean_ns"] / 1e9


def _with_legend(figure: Figure, panel: Axes) -> Figure:
    handles, labels = panel.get_legend_handles_labels()
    ours = LOOKS[Algorithm.TNR].label
    named = [f"{label} (ours)" if label == ours else label for label in labels]
    figure.legend(handles, named, loc="outside upper center", ncols=len(labels))
    return figure
