"""The cases of dynamic routing, as one table that the code and the documentation read.

A notification has target iCOLs (some may be overloaded) and target aCOLs. Each row says when it
applies and which copy carries CBV_p, the clusters that were left out because of overload. Rows are
tried from the top; None means that it does not matter.
"""

from dataclasses import dataclass
from enum import Enum
from itertools import product

from octopis.routing.reasons import Reason


class Carrier(Enum):
    """Which copy carries CBV_p."""

    NONE = "no copy"
    FREE_ICOL = "the copy on the free target iCOL with the shortest queue"
    FREE_ACOL = "the copy on the least loaded target aCOL"
    OVERLOADED_ICOL = "one more copy, on the least loaded target iCOL"


@dataclass(frozen=True, slots=True)
class Case:
    """One row: when it applies, which copy carries CBV_p, and the reason that it is given."""

    name: str
    overloaded_icol: bool | None
    free_icol: bool | None
    free_acol: bool | None
    carrier: Carrier
    reason: Reason

    def applies(self, overloaded_icol: bool, free_icol: bool, free_acol: bool) -> bool:
        """Tell whether the row is for this state of the target links."""
        return (
            self.overloaded_icol in (None, overloaded_icol)
            and self.free_icol in (None, free_icol)
            and self.free_acol in (None, free_acol)
        )


CASES = (
    Case("static", False, None, None, Carrier.NONE, Reason.MATCH),
    Case("I", True, True, None, Carrier.FREE_ICOL, Reason.CASE_I),
    Case("II", True, False, True, Carrier.FREE_ACOL, Reason.CASE_II),
    Case("III", True, False, False, Carrier.OVERLOADED_ICOL, Reason.CASE_III),
)


_CASE_FOR = {
    state: next(case for case in CASES if case.applies(*state))
    for state in product((False, True), repeat=3)
}


def case_for(*, overloaded_icol: bool, free_icol: bool, free_acol: bool) -> Case:
    """Return the row for this state of the target links."""
    return _CASE_FOR[overloaded_icol, free_icol, free_acol]
