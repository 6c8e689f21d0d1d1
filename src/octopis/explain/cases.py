"""The cases of dynamic routing: their table in words, and a question for which each is taken."""

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, Notification
from octopis.core.routing.algorithms.dnr import CASES, Case
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from octopis.explain.question import AskedSubscriber, Question

COLUMNS = (
    "case",
    "a target iCOL is overloaded",
    "a target iCOL is free",
    "the least loaded target aCOL is free",
    "what carries CBV_p",
)
_ANSWERS = {True: "yes", False: "no", None: "-"}

HOST, ABOVE, BELOW, BESIDE = (
    BrokerId("a", 1),
    BrokerId("a", 0),
    BrokerId("a", 2),
    BrokerId("b", 1),
)
"""The broker that decides, its two secondary neighbours, and its primary neighbour."""

_SCOT = SCOT(AcyclicFactor.from_edges([("a", "b")]), ConnectivityFactor.complete(3))


def rows() -> list[tuple[str, ...]]:
    """Return a row of words for each case, in the order in which they are tried."""
    return [
        (
            case.name,
            _ANSWERS[case.overloaded_icol],
            _ANSWERS[case.free_icol],
            _ANSWERS[case.free_acol],
            case.carrier.value,
        )
        for case in CASES
    ]


def question_for(case: Case) -> Question:
    """Return a question for which HOST takes `case`: two target iCOLs and one target aCOL."""
    overloaded = set()
    if case.overloaded_icol:
        overloaded.add((HOST, ABOVE))
        if case.free_icol is False:
            overloaded.add((HOST, BELOW))
    if case.free_acol is False:
        overloaded.add((HOST, BESIDE))
    everything = parse_filter("TRUE")
    return Question(
        _SCOT,
        HOST,
        Notification({}),
        tuple(AskedSubscriber(each.short, each, everything) for each in (ABOVE, BELOW, BESIDE)),
        frozenset(overloaded),
    )
