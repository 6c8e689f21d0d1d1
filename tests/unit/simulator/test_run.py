import gc
import os
import signal
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from octopis.errors import InvalidConfiguration, LawViolated, OperationFailed
from octopis.scenario.document import QueueOptions
from octopis.simulator import run as run_module
from octopis.simulator import simulation as simulation_module
from octopis.simulator.notifying import StaticNotifying
from octopis.simulator.replay import FILE as EVIDENCE
from octopis.simulator.run import run
from octopis.trace import Level, read_summary
from octopis.trace.schemas import SCHEMAS
from octopis.trace.summary import FILE as SUMMARY
from support.simulations import Publishes, Setup, Subscribes, digests, plain, rows, written

SETUP = Setup(
    subscribers=(Subscribes("c,0"), Subscribes("b,1", "x > 1")),
    publications=tuple(Publishes("a,0", number * 100_000, number % 3) for number in range(2500)),
)


class Forgetful(StaticNotifying):
    """Sends nothing."""

    def serve(self, station, _output, copy, now) -> None:
        self._take_in(copy.subject, station, copy.hops, now)
        self._end(copy.subject, now)


@pytest.mark.parametrize("level", Level)
def test_run_leaves_the_tables_of_its_level_and_a_summary(tmp_path: Path, level: Level):
    summary = run(written(SETUP, tmp_path / "scenario"), tmp_path / "trace", level=level)
    files = {path.name for path in (tmp_path / "trace").iterdir()}
    assert files == {f"{name}.parquet" for name in level.tables} | {SUMMARY}
    assert read_summary(tmp_path / "trace") == summary
    assert (summary.state, summary.reason, summary.level) == ("complete", "", level.value)
    for name in level.tables:
        schema = pq.read_schema(tmp_path / "trace" / f"{name}.parquet")
        assert schema.equals(SCHEMAS[name])


def test_folder_that_is_not_empty_is_left_alone(tmp_path: Path):
    (tmp_path / "keep").write_text("me")
    scenario = written(SETUP, tmp_path / "scenario")
    with pytest.raises(InvalidConfiguration, match="not empty"):
        run(scenario, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keep", "scenario"]


def test_ctrl_c_leaves_a_valid_trace_that_is_marked_as_partial(tmp_path: Path):
    trace = tmp_path / "trace"
    told: list[int] = []

    def interrupt(_phase: str, done: int, _total: int, _now: int) -> None:
        told.append(done)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(written(SETUP, tmp_path / "scenario"), trace, level=Level.FULL, progress=interrupt)
    summary = read_summary(trace)
    assert (summary.state, summary.reason) == ("partial", "interrupted")
    assert told == [1024]  # it ended before the next batch did
    assert 1024 <= summary.notifications < 2048
    assert len(rows(trace, "publications")) == summary.notifications
    assert len(rows(trace, "deliveries")) == summary.deliveries
    assert summary.deliveries_lost == 0  # what was not published yet is not lost
    assert not (trace / EVIDENCE).exists()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, InvalidConfiguration, RuntimeError])
def test_run_that_ends_before_it_begins_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
):
    def broken(*_arguments: object, **_options: object) -> None:
        raise failure

    monkeypatch.setattr(run_module, "Simulation", broken)
    with pytest.raises(failure):
        run(written(SETUP, tmp_path / "scenario"), tmp_path / "trace", level=Level.FULL)
    assert [path.name for path in tmp_path.iterdir()] == ["scenario"]


def test_interrupted_run_is_the_beginning_of_the_whole_run(tmp_path: Path):
    scenario = written(SETUP, tmp_path / "scenario")
    run(scenario, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(scenario, tmp_path / "part", progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
    whole, part = rows(tmp_path / "whole", "publications"), rows(tmp_path / "part", "publications")
    assert len(part) < len(whole)
    assert [row for row in whole if row in part] == part


def test_ctrl_c_works_as_before_after_a_run(tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    run(written(SETUP, tmp_path / "scenario"), tmp_path / "trace")
    assert signal.getsignal(signal.SIGINT) is before


def test_second_ctrl_c_does_not_wait_for_the_step(tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    seen: list[bool] = []

    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        seen.append(signal.getsignal(signal.SIGINT) is before)

    with pytest.raises(KeyboardInterrupt):
        run(written(SETUP, tmp_path / "scenario"), tmp_path / "trace", progress=interrupt)
    assert seen == [True]


def test_run_needs_no_main_thread(tmp_path: Path):
    scenario = written(SETUP, tmp_path / "scenario")
    thread = threading.Thread(target=run, args=(scenario, tmp_path / "thread"))
    thread.start()
    thread.join()
    run(scenario, tmp_path / "main")
    assert digests(tmp_path / "thread") == digests(tmp_path / "main")


@pytest.mark.parametrize("enabled", [True, False])
def test_collector_is_as_before_after_a_run(tmp_path: Path, enabled: bool):
    collecting: list[bool] = []
    if not enabled:
        gc.disable()
    try:
        run(
            written(SETUP, tmp_path / "scenario"),
            tmp_path / "trace",
            progress=lambda *_: collecting.append(gc.isenabled()),
        )
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
    assert set(collecting) == {False}


def test_run_that_fails_leaves_a_valid_trace_that_says_why(tmp_path: Path):
    setup = Setup(
        subscribers=(Subscribes("c,0"),),
        publications=(Publishes("a,0"),) * 50,
        costs=plain(send_overhead_us=500),
        queues=QueueOptions(2, "stop"),
    )
    trace = tmp_path / "trace"
    with pytest.raises(OperationFailed, match="bound of 2 messages") as caught:
        run(written(setup, tmp_path / "scenario"), trace)
    summary = read_summary(trace)
    assert (summary.state, summary.reason) == ("partial", str(caught.value))
    assert not (trace / EVIDENCE).exists()


@pytest.mark.parametrize("level", Level)
def test_violated_law_leaves_a_valid_trace_and_evidence(
    tmp_path: Path, level: Level, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(simulation_module, "StaticNotifying", Forgetful)
    trace = tmp_path / "trace"
    with pytest.raises(LawViolated) as caught:
        run(written(SETUP, tmp_path / "scenario"), trace, level=level)
    summary = read_summary(trace)
    assert (summary.state, summary.reason) == ("violated", str(caught.value))
    assert (trace / EVIDENCE).exists()
    for name in level.tables:
        assert pq.read_table(trace / f"{name}.parquet").num_rows >= 0
