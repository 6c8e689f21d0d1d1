import json
from collections.abc import Callable

import pytest

from octopis.core.routing import Algorithm
from octopis.demo.comparison import (
    FACTS,
    Compared,
    cautions,
    check_faultless,
    compared,
    findings,
    shown_cases,
    shown_ms,
    went_around,
)
from octopis.demo.pace import Pace
from octopis.demo.rounds import Round
from octopis.demo.run import ROUNDS
from octopis.errors import DeliveriesWrong

Make = Callable[..., Compared]


def test_rounds_and_verdicts_come_together(rounds: list[Round], row: Make):
    verdicts = {each.algorithm: row(each.algorithm).verdict for each in rounds}
    found = compared(rounds, verdicts)
    assert [each.algorithm for each in found] == list(ROUNDS)
    assert [each.over_slowed for each in found] == [90, 80, 5, 3]
    assert found[0].subscription_ims == 340
    assert found[2].cases == {"I": 7}


def test_every_fact_has_a_cell(rows: list[Compared]):
    shown = dict(zip(FACTS, rows[2].cells(), strict=True))
    assert shown["deliveries due"] == 936
    assert shown["delay, median"] == "1.2 ms"
    assert shown["delay, 99th percentile"] == "236 ms"
    assert shown["copies sent around overload"] == 149
    assert [each.sent_around for each in rows] == [0, 0, 149, 137]


def test_document_is_json(rows: list[Compared]):
    found = json.loads(json.dumps(rows[1].document()))
    assert found["algorithm"] == "snr"
    assert (found["lost"], found["twice"], found["unasked"]) == (0, 0, 0)
    assert found["longest_queue"] == {"link": "b,2 → b,0", "length": 1001}
    assert (found["cases"], found["sent_around"]) == ({}, 0)
    assert rows[2].document()["cases"] == {"I": 149, "II": 0}
    assert rows[3].document()["cases"]["around overload"] == 137


@pytest.mark.parametrize("fault", ["lost", "twice", "unasked"])
def test_any_wrong_delivery_is_an_error_that_names_the_round(
    rows: list[Compared], row: Make, fault: str
):
    check_faultless(rows)
    with pytest.raises(DeliveriesWrong, match="the round under SNR are wrong: 3 ") as raised:
        check_faultless([rows[0], row(Algorithm.SNR, **{fault: 3}), *rows[2:]])
    assert raised.value.exit_status == 1


def test_findings_say_what_the_numbers_say(rows: list[Compared]):
    told = findings(rows)
    assert len(told) == 5
    assert told[0].startswith("All 936 deliveries")
    assert "149 of 300 notifications around the slowed link" in told[1]
    assert "236 ms, SNR's 6.48 s" in told[1]
    assert told[2].startswith("TNR led 137 of 300 notifications around the slowed link")
    assert "212 ms, SNR's 6.48 s" in told[2]
    assert "TNR needed 1,569 messages between brokers, SNR 1,581 and BID 1,581" in told[3]
    assert "under DNR 144 and under TNR 152 deliveries came after a later one" in told[4]


def test_busy_machine_is_said_and_nothing_is_concluded(row: Make):
    late = Pace(1_900.0, 2_400.0, 1.5)
    dnr, tnr = row(Algorithm.DNR, 151, pace=late), row(Algorithm.TNR, 163, notification_ims=1)
    rows = [row(Algorithm.BID), row(Algorithm.SNR), dnr, tnr]
    (told,) = cautions(rows)
    assert told.startswith(
        "This machine was too busy for a comparison: under DNR publishers were late (1,900 ms at "
        "the median, 2,400 ms at the 99th percentile) and brokers took 1.5 s to say how they are."
    )
    (found,) = findings(rows)
    assert found.startswith("All 936 deliveries"), "what was delivered is as it must be"
    assert [each.document()["pace"]["kept"] for each in rows] == [True, True, False, True]


def test_publishers_that_a_full_queue_holds_back_are_not_the_machines_fault(row: Make):
    late = Pace(1_900.0, 2_400.0, 0.3)
    slow = row(Algorithm.SNR, publishers_waited=True, pace=late)
    rows = [row(Algorithm.BID), slow, row(Algorithm.DNR), row(Algorithm.TNR)]
    assert cautions(rows) == []
    assert findings(rows)[-1].startswith("Under SNR a queue passed its high-water mark")


def test_findings_claim_nothing_that_did_not_happen(row: Make):
    rows = [row(each) for each in ROUNDS]
    rows[1] = row(Algorithm.SNR, lost=1)
    assert findings(rows) == []


def test_tree_of_bid_that_leads_past_the_link_is_said_plainly(row: Make):
    late = [row(Algorithm.DNR), row(Algorithm.TNR)]
    rows = [row(Algorithm.BID, 12), row(Algorithm.SNR, lost=1), *late]
    (told,) = findings(rows)
    assert told.startswith("BID's tree led past the slowed link (12 notifications went over it)")


def test_publishers_that_had_to_wait_are_said(row: Make):
    slow = row(Algorithm.SNR, lost=1, publishers_waited=True)
    (told,) = findings([row(Algorithm.BID), slow, row(Algorithm.DNR), row(Algorithm.TNR)])
    assert told.startswith("Under SNR a queue passed its high-water mark")


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(None, "-"), (0.84, "0.8 ms"), (99.9, "99.9 ms"), (236.4, "236 ms"), (6_480, "6.48 s")],
)
def test_delays_read_well(milliseconds: float | None, shown: str):
    assert shown_ms(milliseconds) == shown


def test_cases_that_did_not_come_up_are_left_out():
    assert shown_cases({"I": 1_200, "II": 0, "III": 3}) == "I 1,200, III 3"
    assert shown_cases({}) == "-"


def test_way_that_is_as_short_is_no_other_way():
    cases = {"target": 9, "early": 4, "late": 3, "waits": 1, "around overload": 2, "II": 1}
    assert went_around(cases) == {"around overload": 2, "II": 1}
