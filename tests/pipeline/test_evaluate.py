"""The whole evaluation on real Spark, very small: exact, resumable, and the same every time.

Also the real command: Ctrl-C at several moments ends it, leaves no process, and it goes on later,
to the same end.
"""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octopis.evaluation.folders import REQUEST
from octopis.evaluation.report import Report
from octopis.trace import read_summary
from support.evaluate_command import QUICK, SMALLEST, command
from support.evaluations import evaluated, evaluation_in, tiny_sizes
from support.traces import rewrite

PARTS = ("quotes", "scenarios", "truth", "runs", "metrics")
RUNS = 4 + 4 + 3 * 4 + 3 + 2 * 4
"""Of subscribers, publishers, three bursts, several without BID, and both varied scenarios."""


@pytest.fixture(scope="module", autouse=True)
def _tiny() -> Iterator[None]:
    with tiny_sizes():
        yield


@pytest.fixture(scope="module")
def first(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, _tiny: None
) -> tuple[Path, Report]:
    out = tmp_path_factory.mktemp("first")
    return out, evaluated(spark, out)


def times(out: Path, *parts: str) -> dict[str, int]:
    """Return when each file of results was written; a sweep's own report is new every time."""
    return {
        str(path.relative_to(out)): path.stat().st_mtime_ns
        for part in parts or PARTS
        for path in (out / part).rglob("*")
        if path.is_file() and path.name != "sweep.json"
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_everything_that_must_hold_exactly_does(first: tuple[Path, Report]):
    _, report = first
    assert [(each.text, each.holds) for each in report.exact] == [
        (each.text, True) for each in report.exact
    ]
    messages, trees, *_, deliveries = report.exact
    assert messages.found == "74 to 74 messages, 75 brokers"
    assert trees.found.startswith("0 of ")
    assert deliveries.found.startswith(f"{RUNS} of {RUNS} runs, ")


def test_structure_alone_gives_the_papers_share_of_messages(first: tuple[Path, Report]):
    """74 messages by ours; 366 by a flood, of which all but 74 are dropped."""
    fewer, dropped, *_ = first[1].outcomes
    assert fewer.values == dropped.values == pytest.approx([100 * (1 - 74 / 366)])


def test_page_pictures_and_tables_are_there(first: tuple[Path, Report]):
    found = contents(first[0] / "report")
    assert found["index.html"].startswith(b"<!doctype html>")
    assert sum(name.endswith(".svg") for name in found) == 4
    runs = pa_csv.read_csv(first[0] / "report" / "tables" / "runs.csv")
    assert len(runs) == RUNS
    assert set(runs.column("equals_truth").to_pylist()) == {True}
    assert set(runs.column("state").to_pylist()) == {"complete"}
    burst = pa_csv.read_csv(first[0] / "report" / "tables" / "figure-11.csv")
    assert len(set(burst.column("scenario").to_pylist())) == 3


def test_no_draft_is_left(first: tuple[Path, Report]):
    assert not [path for path in first[0].rglob("*") if path.name.endswith(".draft")]


def test_only_what_is_missing_is_made_anew(spark: SparkSession, first: tuple[Path, Report]):
    out, _ = first
    before, results = times(out), contents(out / "metrics")
    missing = (
        "metrics/several-seed1/",
        "runs/burst-80000-seed1-dnr/",
        "truth/sensitivity-quiet.json",
    )
    shutil.rmtree(out / missing[0])
    shutil.rmtree(out / missing[1])
    (out / missing[2]).unlink()

    evaluation = evaluation_in(out)
    assert not evaluation.is_measured
    evaluation.run(spark)

    after = times(out)
    assert after.keys() == before.keys()
    anew = {name for name in after if after[name] != before[name]}
    assert anew == {name for name in before if name.startswith(missing)}
    assert contents(out / "metrics") == results


def test_finished_evaluation_only_reports_again_and_needs_no_spark(
    octopis, first: tuple[Path, Report], monkeypatch: pytest.MonkeyPatch
):
    out, report = first

    def no_spark(*_settings: object) -> None:
        pytest.fail("Spark is not needed")

    monkeypatch.setattr("octopis.cli.evaluate.open_spark", no_spark)
    before, results = times(out), contents(out / "report")
    status, printed, told = octopis("evaluate", "--out", str(out), "--json")
    assert status == 0, told
    found = json.loads(printed)
    assert Path(found["page"]) == out / "report" / "index.html"
    assert [each["holds"] for each in found["exact"]] == [True] * 5
    assert found["claims"] == [each.as_document() for each in report.outcomes]
    assert told.startswith("report: ")
    assert "1 of 1 done" in told
    assert times(out) == before
    assert contents(out / "report") == results


@pytest.fixture
def _usual_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C mean what it usually does: a Spark of other tests may have a say in it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def scenarios(out: Path) -> set[str]:
    return {path.name for path in (out / "scenarios").glob("[a-z]*")}


def draft_in(folder: Path) -> bool:
    return any(folder.glob(".*.draft"))


def assert_tidy(folder: Path) -> None:
    assert not [path for path in folder.rglob("*") if path.name.endswith(".draft")]
    assert not list(folder.glob("octopis-*")), "Spark's own folder is gone"


def begin(first: Path, folder: Path, *parts: str) -> Path:
    """Begin an evaluation with some parts of the first one, as if it had been stopped there."""
    out = folder / "out"
    out.mkdir()
    shutil.copy(first / REQUEST, out)
    for part in parts:
        shutil.copytree(first / part, out / part)
    return out


@pytest.fixture(scope="module")
def stopped(first: tuple[Path, Report], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a second evaluation, which is stopped twice, and then goes on to its end."""
    folder = tmp_path_factory.mktemp("stopped")
    begin(first[0], folder, "quotes")
    return folder


@pytest.mark.usefixtures("_usual_ctrl_c")
def test_ctrl_c_while_spark_starts_leaves_nothing_but_the_request(tmp_path: Path):
    with command(QUICK, tmp_path) as running:
        running.wait_until(lambda: running.has_spark)
        running.interrupt(os.killpg)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [REQUEST]
    assert_tidy(tmp_path)


@pytest.mark.usefixtures("_usual_ctrl_c")
def test_ctrl_c_while_a_scenario_is_built_keeps_the_others(stopped: Path):
    out = stopped / "out"
    with command(SMALLEST, stopped) as running:
        running.wait_until(lambda: scenarios(out) and draft_in(out / "scenarios"))
        running.interrupt(os.kill)  # to the command alone
    assert_tidy(stopped)
    before, done = times(out, "quotes", "scenarios"), len(scenarios(out))

    with command(SMALLEST, stopped) as running:
        running.wait_until(lambda: len(scenarios(out)) > done)
        assert f"{done} of 10 done" in running.told, "it begins with what was done before"
        running.interrupt(os.killpg)  # to all, as a terminal does
    assert_tidy(stopped)
    assert before.items() <= times(out, "quotes", "scenarios").items()


def test_evaluation_that_was_stopped_is_the_same_to_the_byte_and_a_lost_delivery_is_found(
    octopis, spark: SparkSession, first: tuple[Path, Report], stopped: Path
):
    out = stopped / "out"
    by_another_java = tuple(f"{name}/notifications.parquet/" for name in scenarios(out))
    evaluated(spark, out)
    assert contents(out / "report") == contents(first[0] / "report")
    for part in ("scenarios", "truth", "metrics"):
        found, expected = contents(out / part), contents(first[0] / part)
        assert found.keys() == expected.keys()
        other = [name for name in found if found[name] != expected[name]]
        # Each Java lists the encodings of a column in an order of its own, in the file's footer.
        assert [name for name in other if not name.startswith(by_another_java)] == []
        for name in other:
            assert pq.read_table(out / part / name).equals(pq.read_table(first[0] / part / name))

    rewrite(out / "runs" / "burst-100000-by-2-seed1-dnr", "deliveries", lambda rows: rows[1:])
    shutil.rmtree(out / "metrics" / "several-seed1")
    status, printed, told = octopis("evaluate", "--out", str(out))
    assert status == 1
    assert told.splitlines()[-1].startswith(
        "octopis: 1 of what must hold exactly does not; the first: Deliveries are those of the "
        f"ground truth: none lost, twice or unasked (all): {RUNS - 1} of {RUNS} runs"
    )
    assert "The paper's claims" in printed
    assert "NO</td>" in (out / "report" / "index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("_usual_ctrl_c")
def test_ctrl_c_while_simulations_run_keeps_the_traces_that_are_whole(
    first: tuple[Path, Report], tmp_path: Path
):
    out = begin(first[0], tmp_path, "quotes", "scenarios", "truth")

    def traces() -> list[Path]:
        return [path.parent for path in (out / "runs").glob("*/run.json")]

    with command(SMALLEST, tmp_path) as running:
        running.wait_until(lambda: traces() and draft_in(out / "runs"))
        running.interrupt(os.killpg)
    assert_tidy(tmp_path)
    assert {read_summary(trace).state for trace in traces()} == {"complete"}
