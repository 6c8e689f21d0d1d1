from pathlib import Path

import pytest

from octopis.errors import InvalidConfiguration, LawViolated
from octopis.simulator.replay import FILE, Evidence, moments_before, read_evidence, write_evidence
from support.simulations import MS, Publishes, Setup, Subscribes, ran, written

SETUP = Setup(
    subscribers=(Subscribes("c,0"),),
    publications=(Publishes("a,0"), Publishes("b,0", 3 * MS), Publishes("a,0", 30 * MS)),
)


def violation(**changes: object) -> LawViolated:
    facts = {"seed": 7, "time_ns": 5, "broker": "b,0", "notification": ("a,0", 1)} | changes
    return LawViolated("no loop", "a broker got a second copy", **facts)


def test_evidence_is_read_as_it_was_written(tmp_path: Path):
    scenario = written(SETUP, tmp_path / "scenario")
    evidence = Evidence.of(violation(), scenario, real_brokers=True)
    write_evidence(tmp_path, evidence)
    assert read_evidence(tmp_path) == evidence


def test_evidence_names_the_run_and_the_violation(tmp_path: Path):
    scenario = written(SETUP, tmp_path / "scenario")
    evidence = Evidence.of(violation(), scenario, real_brokers=False)
    assert evidence.scenario == str(tmp_path / "scenario")
    assert evidence.scenario_digest == scenario.digest
    assert (evidence.algorithm, evidence.real_brokers) == (SETUP.algorithm, False)
    assert (evidence.law, evidence.seed, evidence.time_ns) == ("no loop", 7, 5)
    assert (evidence.broker, evidence.publisher, evidence.sequence) == ("b,0", "a,0", 1)


def test_violation_without_a_notification_has_no_publisher(tmp_path: Path):
    scenario = written(SETUP, tmp_path / "scenario")
    evidence = Evidence.of(violation(notification=None), scenario, real_brokers=False)
    assert (evidence.publisher, evidence.sequence) == (None, None)


def test_trace_without_a_violation_cannot_be_replayed(tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="only a run that violated a law"):
        read_evidence(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no json", b"{}", b'{"law": 5}'])
def test_file_that_is_no_evidence_is_named(tmp_path: Path, content: bytes):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InvalidConfiguration, match=r"violation\.json is not a violation"):
        read_evidence(tmp_path)


def test_moments_are_the_last_messages_at_the_broker_and_all_of_the_notification(tmp_path: Path):
    with ran(SETUP) as (summary, trace):
        scenario = written(SETUP, tmp_path / "scenario")
        begin = summary.begin_ns

        def moments(time_ns: int, last_ms: float, **changes: object) -> list[tuple[str, str, str]]:
            broken = violation(time_ns=time_ns, **changes)
            evidence = Evidence.of(broken, scenario, real_brokers=False)
            found = moments_before(trace, evidence, last_ms)
            assert [row["enqueued_ns"] for row in found] == sorted(
                row["enqueued_ns"] for row in found
            )
            return [(row["publisher"], row["source"], row["target"]) for row in found]

        # At 4 ms the copy of b,0's notification has gone; those of a,0's second come at 30 ms.
        last = moments(begin + 4 * MS, 2, notification=None)
        assert last == [("b,0", "b,0", "c,0")]
        longer = moments(begin + 4 * MS, 10, notification=None)
        assert longer == [("a,0", "a,0", "b,0"), ("a,0", "b,0", "c,0"), *last]
        with_all_of_the_first = moments(begin + 4 * MS, 2, notification=("a,0", 0))
        assert with_all_of_the_first == longer
        assert moments(begin + 4 * MS, 2, broker="a,2", notification=None) == []
