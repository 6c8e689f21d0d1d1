"""Questions about filters and ways: nothing is sent to the overlay for them."""

from collections.abc import Iterator

from octopis.core.filters import Filter, FilterExplanation, explain, parse_filter, warnings_for
from octopis.core.model import Notification
from octopis.core.routing.algorithms import Algorithm
from octopis.core.topology import SCOT, from_catalogue
from octopis.errors import InvalidFilter, InvalidSubscription
from octopis.explain.explainer import explain as explain_route
from octopis.explain.explanation import Hop, RouteExplanation
from octopis.explain.question import AskedSubscriber, Question
from octopis.gateway.documents import (
    CheckedFilter,
    ExplainedFilter,
    ExplainedLine,
    ExplainQuestion,
    FilterQuestion,
    RouteAnswer,
    RouteAnswers,
    RouteDelivery,
    RouteHop,
    RouteQuestion,
)
from octopis.gateway.doors.notations import checked
from octopis.gateway.problems import Problem

_BROKERS_MAX = 1_000


def check_filter(question: FilterQuestion) -> CheckedFilter:
    """Return what a filter comes to, or raise InvalidFilter."""
    found = parse_filter(question.filter, question.dialect)
    warnings = warnings_for(question.filter, question.dialect)
    return CheckedFilter(str(found), sorted(found.names()), warnings)


def explain_filter(question: ExplainQuestion) -> ExplainedFilter:
    """Return why a filter matches or not, line by line."""
    filter_ = parse_filter(question.filter, question.dialect)
    found = explain(filter_, checked(question.attributes).attributes)
    lines = list(_lines(found, 0))
    return ExplainedFilter(lines[0].truth, lines)


def explain_ways(own: SCOT | None, question: RouteQuestion) -> RouteAnswers:
    """Return where a notification goes under each algorithm. `own` is asked about by no name."""
    scot = own
    if scot is None:
        assert question.topology is not None, "without an overlay there is a name"
        scot = from_catalogue(question.topology).scot
    if len(scot.brokers) > _BROKERS_MAX:
        raise Problem(
            413,
            f"ways are explained for up to {_BROKERS_MAX:,} brokers: use octopis route explain "
            "for more",
        )
    asked = Question(
        scot,
        scot.broker(question.publish),
        Notification(checked(question.attributes).attributes),
        tuple(
            AskedSubscriber(each.name, scot.broker(each.broker), _filter(each.name, each.filter))
            for each in question.subscribers
        ),
        frozenset((scot.broker(one), scot.broker(other)) for one, other in question.overloaded),
        {},
        frozenset(map(scot.broker, question.dead)),
        frozenset((scot.broker(one), scot.broker(other)) for one, other in question.cut),
    )
    return RouteAnswers(
        {
            name: _answer(explain_route(asked, Algorithm(name)))
            for name in dict.fromkeys(question.algorithms)
        }
    )


def _filter(name: str, text: str) -> Filter:
    try:
        return parse_filter(text)
    except InvalidFilter as failure:
        raise InvalidSubscription(f"the filter of {name}: {failure}", name) from failure


def _lines(found: FilterExplanation, depth: int) -> Iterator[ExplainedLine]:
    truth = found.truth.lower()
    yield ExplainedLine(found.condition, truth, found.reason, depth)  # type: ignore[arg-type]
    for part in found.parts:
        yield from _lines(part, depth + 1)


def _answer(found: RouteExplanation) -> RouteAnswer:
    paths = found.paths
    homes = {name: broker for name, broker, _ in found.question.subscribers}
    reached = [*found.reached_at_host, *(name for hop in found.hops for name in hop.reached)]
    return RouteAnswer(
        messages=found.ims,
        hops=[_hop(found, hop) for hop in found.hops],
        deliveries=[
            RouteDelivery(name, homes[name].short, len(path) - 1) for name, path in paths.items()
        ],
        lost=found.lost,
        duplicates=len(reached) - len(set(reached)),
    )


def _hop(found: RouteExplanation, hop: Hop) -> RouteHop:
    carries = found.bits(hop) or " ".join(each.short for each in hop.targets)
    return RouteHop(
        hop.source.short, hop.target.short, hop.reason.value, hop.reason.in_words, carries
    )
