"""The pictures of the scene: deliveries over time around the kill, and the way around it."""

from matplotlib.figure import Figure

from octopis.core.routing import Algorithm
from octopis.demo.fault.cast import Cast, question_of
from octopis.demo.fault.outcome import FaultOutcome
from octopis.demo.fault.record import BUCKET_S
from octopis.demo.figures import plain_axes
from octopis.explain.explainer import explain
from octopis.explain.pictures import draw_explanation

_BEHIND = "#5c1a80"
_ELSEWHERE = "#7a828c"
_DEAD = "#fbe9e7"
_KILL = "#b3261e"


def draw_fault(outcome: FaultOutcome) -> Figure:
    """Draw the deliveries in each tenth of a second around the kill."""
    with plain_axes() as (figure, axes):
        axes.axvspan(0, outcome.back_s, color=_DEAD, zorder=0)
        axes.axvline(0, color=_KILL, linewidth=1.2)
        above = axes.get_xaxis_transform()
        axes.text(
            0, 1.0, f" {outcome.cast.victim} is killed", transform=above, va="top", color=_KILL
        )
        axes.text(outcome.back_s, 0.9, " runs again", transform=above, va="top", color=_ELSEWHERE)
        for rates, colour, line, label in (
            (outcome.rates_elsewhere, _ELSEWHERE, "--", "subscribers elsewhere"),
            (outcome.rates_behind, _BEHIND, "-", "subscribers behind the broker"),
        ):
            edges = [outcome.begin_s + BUCKET_S * number for number in range(len(rates) + 1)]
            axes.stairs(
                rates,
                edges,
                baseline=None,
                color=colour,
                linestyle=line,
                linewidth=1.8,
                label=label,
            )
        axes.set_title("Deliveries in each tenth of a second, around the kill", pad=10)
        axes.set_xlabel("seconds since the kill")
        axes.set_ylabel("deliveries")
        most = max((*outcome.rates_behind, *outcome.rates_elsewhere, 1))
        axes.set_ylim(0, most * 1.3)
        axes.legend(loc="lower left")
    return figure


def draw_way_around(cast: Cast) -> Figure:
    """Draw the way of one notification while the broker is dead, as the routing core decides."""
    question = question_of(cast.scot, cast.host, cast.subscribers, cast.victim)
    return draw_explanation(explain(question, Algorithm.TNR), cast.topology.name)
