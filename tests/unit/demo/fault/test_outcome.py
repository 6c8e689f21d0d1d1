import json

import pytest

from octopis.core.model import BrokerId
from octopis.demo.fault.outcome import FaultOutcome, check_went_on, fault_findings, outcome_of
from octopis.demo.fault.record import FaultRecord
from octopis.errors import DeliveriesWrong

MS = 1_000_000


def test_document_is_json(outcome: FaultOutcome):
    found = json.loads(json.dumps(outcome.document()))
    assert (found["killed"], found["publisher"], found["algorithm"]) == ("b,0", "d,0", "tnr")
    assert (found["published"], found["due"], found["delivered"]) == (400, 1_600, 1_596)
    assert (found["lost"], found["twice"]) == (4, 0)
    assert found["longest_gap_behind_ms"] == {
        "before_kill": 10.0,
        "while_dead": 30.0,
        "since_back": 50.0,
    }
    assert (found["back_after_s"], found["table_whole_after_s"]) == (1.0, 1.3)
    assert (found["sent_around_fault"], found["passed_on_since"]) == (98, 197)
    assert found["cut_off_by_snr"] == ["a,0"]
    assert [each["lost"] for each in found["subscribers"]] == [2, 2, 0, 0]
    over_time = found["deliveries_over_time"]
    assert (over_time["begin_s"], over_time["every_s"]) == (-1.0, 0.1)
    assert over_time["behind"][9:12] == [20, 16, 20], "a tenth begins at the kill"
    assert len(over_time["behind"]) == len(over_time["elsewhere"]) == 39


def test_findings_say_what_the_numbers_say(outcome: FaultOutcome):
    killed, gap, lost, back, snr = fault_findings(outcome)
    assert killed.startswith("B(b, 0) was killed while 100 notifications a second went through")
    assert "the way to 2 of 4 subscribers led through it" in killed
    assert gap == (
        "Nothing stopped: behind the broker, the longest gap between two deliveries was 30.0 ms "
        "while it was dead and 50.0 ms after that (10.0 ms before the kill)."
    )
    assert lost == (
        "Of 1,600 deliveries 4 were lost, and none came twice; all that was lost was published "
        "within 10.0 ms of the kill."
    )
    assert "ran after 1.0 s, knew all 4 subscriptions after 1.3 s" in back
    assert "sends what is for B(a, 0) to the dead broker all the same" in snr


def test_findings_of_a_scene_without_any_loss_are_shorter(record: FaultRecord):
    for each in record.got.values():
        each[:] = [(number, at_ns) for number, at_ns in enumerate(record.published_ns, 1)]
    told = fault_findings(outcome_of(record, 100))
    assert told[2] == "Of 1,600 deliveries none was lost, and none came twice."


def test_what_comes_twice_is_an_error_and_nothing_is_claimed(record: FaultRecord):
    record.got[BrokerId("d", 1)].append((7, record.whole_ns))
    outcome = outcome_of(record, 100)
    assert not any("Nothing stopped" in each for each in fault_findings(outcome))
    assert "1 came twice" in fault_findings(outcome)[1]
    with pytest.raises(DeliveriesWrong, match=r"a killed broker are wrong: 1 delivered twice$"):
        check_went_on(outcome)


def test_deliveries_that_do_not_go_on_are_an_error(record: FaultRecord):
    check_went_on(outcome_of(record, 100))
    del record.got[BrokerId("a", 0)][150:]
    with pytest.raises(DeliveriesWrong, match="1 subscribers whose deliveries stopped"):
        check_went_on(outcome_of(record, 100))


def test_loss_that_has_nothing_to_do_with_the_kill_is_an_error(record: FaultRecord):
    record.killed_ns += 1_500 * MS
    with pytest.raises(DeliveriesWrong, match="4 lost that the kill does not explain"):
        check_went_on(outcome_of(record, 100))
