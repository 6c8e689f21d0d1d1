from itertools import product

import pytest

from octopis.core.routing.algorithms.dnr import CASES, Carrier, case_for
from octopis.core.routing.messages import Reason

NAMES = ("overloaded_icol", "free_icol", "free_acol")
STATES = list(product([False, True], repeat=3))


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_exactly_one_row(state: tuple[bool, bool, bool]):
    named = dict(zip(NAMES, state, strict=True))
    rows = [case for case in CASES if case.applies(**named)]
    assert rows == [case_for(**named)]


@pytest.mark.parametrize(
    ("state", "name", "carrier"),
    [
        ((False, False, False), "static", Carrier.NONE),
        ((False, True, True), "static", Carrier.NONE),
        ((True, True, False), "I", Carrier.FREE_ICOL),
        ((True, True, True), "I", Carrier.FREE_ICOL),
        ((True, False, True), "II", Carrier.FREE_ACOL),
        ((True, False, False), "III", Carrier.OVERLOADED_ICOL),
    ],
)
def test_row_is_that_of_the_paper(state: tuple[bool, bool, bool], name: str, carrier: Carrier):
    case = case_for(**dict(zip(NAMES, state, strict=True)))
    assert (case.name, case.carrier) == (name, carrier)


def test_every_carrier_and_reason_stands_in_one_row():
    assert [case.carrier for case in CASES] == list(Carrier)
    assert [case.reason for case in CASES] == [
        Reason.MATCH, Reason.CASE_I, Reason.CASE_II, Reason.CASE_III,
    ]  # fmt: skip
