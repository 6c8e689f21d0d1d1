"""The pictures of a demonstration: the slowed link's queue over time, the delays, and the ways.

A way is where one notification of the feed goes while the slowed link is overloaded.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import NamedTopology
from octopis.demo.rounds import Round
from octopis.demo.workload import Feed, SlowedLink
from octopis.explain.explainer import explain
from octopis.explain.pictures import draw_explanation
from octopis.explain.question import AskedSubscriber, Question
from octopis.report.pictures import LOOKS, RC

_SIZE = (7.6, 3.6)
_SLOW = "#7a828c"


def draw_queue(rounds: Sequence[Round], link: SlowedLink, feed: Feed) -> Figure:
    """Draw the queue of the slowed link over time."""
    with plain_axes() as (figure, axes):
        axes.axvspan(feed.begin_s, feed.end_s, color="#eef1f4", zorder=0)
        axes.text(
            (feed.begin_s + feed.end_s) / 2,
            0.98,
            "high-rate feed",
            transform=axes.get_xaxis_transform(),
            va="top",
            ha="center",
            color=_SLOW,
        )
        for each in rounds:
            look = LOOKS[each.algorithm]
            times, lengths = zip(*each.slowed_queue(), strict=True)
            axes.plot(times, lengths, color=look.colour, linestyle=look.line, label=look.label)
        axes.set_title(f"Notifications that wait for the slowed link, {link}", pad=10)
        axes.set_xlabel("seconds since publishing began")
        axes.set_ylabel("queue length")
        axes.set_xlim(left=0)
        longest = max(length for each in rounds for _, length in each.slowed_queue())
        axes.set_ylim(0, max(10, longest) * 1.2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.legend(loc="upper right")
    return figure


def draw_delays(delays_ns: Mapping[Algorithm, Sequence[int]]) -> Figure:
    """Draw which share of the deliveries came within which delay."""
    with plain_axes() as (figure, axes):
        for algorithm, delays in delays_ns.items():
            look = LOOKS[algorithm]
            ordered = np.sort(np.maximum(np.asarray(delays, np.float64) / 1e6, 0.01))
            shares = np.arange(1, len(ordered) + 1) / len(ordered)
            axes.step(
                ordered,
                shares,
                where="post",
                color=look.colour,
                linestyle=look.line,
                label=look.label,
            )
        axes.set_xscale("log")
        axes.set_title("Share of the deliveries that came within a delay", pad=10)
        axes.set_xlabel("delay since the intended time of publication")
        axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_formatter(_shown_delay)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.legend(loc="lower right")
    return figure


def draw_way(topology: NamedTopology, feed: Feed, link: SlowedLink, algorithm: Algorithm) -> Figure:
    """Draw the way of one notification, hop by hop, as the routing core decides."""
    question = Question(
        topology.scot,
        feed.host,
        Notification.checked(feed.example),
        tuple(AskedSubscriber(each.client, each.broker, each.filter) for each in feed.subscribers),
        overloaded=frozenset({(link.source, link.target)}),
    )
    return draw_explanation(explain(question, algorithm), topology.name)


@contextmanager
def plain_axes() -> Iterator[tuple[Figure, Axes]]:
    """Give an empty figure, and let it have our look while it is drawn."""
    with rc_context(dict[Any, Any](RC)):
        figure = Figure(figsize=_SIZE, layout="constrained")
        yield figure, figure.add_subplot()


def _shown_delay(milliseconds: float, _position: Any) -> str:
    if milliseconds < 1:
        return f"{milliseconds * 1000:g} µs"
    return f"{milliseconds:g} ms" if milliseconds < 1000 else f"{milliseconds / 1000:g} s"
