"""What the brokers of a live overlay have left is one run."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from octopis.errors import InvalidConfiguration
from octopis.trace.runs import parts_of, run_summary
from octopis.trace.summary import QueueBound, RunSummary, write_summary

OF_A_BROKER = RunSummary(
    version="1",
    source="live",
    broker="a,0",
    scenario="",
    scenario_digest="",
    seed=0,
    algorithm="dnr",
    level="deliveries",
    state="complete",
    begin_ns=10,
    end_ns=20,
    brokers=1,
    subscriptions=3,
    notifications=4,
    deliveries=5,
    deliveries_lost=1,
    subscription_ims=6,
    subscription_duplicates=7,
    notification_ims=8,
    sync_ims=9,
    dnr_cases={"I": 1},
    queue_length_max=2,
    input_wait_max_ns=0,
    queue_bounds=[],
)


def leave(trace: Path, folder: str, **changes: Any) -> None:
    (trace / folder).mkdir(parents=True)
    summary = msgspec.structs.replace(OF_A_BROKER, **{"broker": folder} | changes)
    write_summary(trace / folder, summary)


def test_counts_are_added_up_and_times_span_all_brokers(tmp_path: Path):
    bound = QueueBound(source="a,1", target="a,0", first_ns=1, policy="stop", dropped=1)
    leave(tmp_path, "a,0")
    leave(
        tmp_path, "a,1", begin_ns=5, end_ns=15, deliveries=50, queue_length_max=70,
        dnr_cases={"I": 1, "II": 2}, queue_bounds=[bound],
    )  # fmt: skip
    found = run_summary(tmp_path)
    assert (found.brokers, found.deliveries, found.notifications) == (2, 55, 8)
    assert (found.begin_ns, found.end_ns, found.state) == (5, 20, "complete")
    assert (found.dnr_cases, found.queue_length_max) == ({"I": 2, "II": 2}, 70)
    assert found.queue_bounds == [bound]
    assert found.broker is msgspec.UNSET
    assert [part.name for part in parts_of(tmp_path)] == ["a,0", "a,1"]


def test_one_brokers_folder_is_a_run_too(tmp_path: Path):
    leave(tmp_path, "a,0")
    assert run_summary(tmp_path / "a,0") == OF_A_BROKER


def test_run_is_partial_where_a_broker_was_killed(tmp_path: Path):
    leave(tmp_path, "a,0")
    (tmp_path / "a,1").mkdir()
    (tmp_path / "a,1" / "links.parquet").touch()
    found = run_summary(tmp_path)
    assert (found.state, found.reason) == ("partial", "a,1 did not finish its trace")


def test_folder_of_simulated_runs_is_no_run(tmp_path: Path):
    leave(tmp_path, "burst-snr", broker=msgspec.UNSET, source="simulator")
    with pytest.raises(InvalidConfiguration, match=r"name them one by one, as .*burst-snr"):
        run_summary(tmp_path)


def test_brokers_of_two_overlays_are_no_run(tmp_path: Path):
    leave(tmp_path, "a,0")
    leave(tmp_path, "a,1", algorithm="snr")
    with pytest.raises(InvalidConfiguration, match="not of one run: they differ in algorithm"):
        run_summary(tmp_path)


def test_folder_without_a_trace_is_named(tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="holds no finished trace"):
        run_summary(tmp_path)
