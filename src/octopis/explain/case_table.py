"""The table of dynamic routing's cases in words, for the command, the figure and the docs."""

from octopis.core.routing.dnr import CASES

COLUMNS = (
    "case",
    "a target iCOL is overloaded",
    "a target iCOL is free",
    "the least loaded target aCOL is free",
    "what carries CBV_p",
)
_ANSWERS = {True: "yes", False: "no", None: "-"}


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
