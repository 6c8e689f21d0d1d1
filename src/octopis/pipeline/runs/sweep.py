"""Sweep: many simulations, one in each Spark task.

    OUT/RUN/              the trace of a run, there only when it is whole
    OUT/scenarios/NAME/   a scenario made for the runs of the same size and seed
    OUT/failed/RUN/       what a failed run left, with error.json
    OUT/sweep.json        every run: its scenario, and how it went

Started again, a sweep does what is not done yet, and tries anew what failed.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.errors import InvalidConfiguration, OctopisError, OperationFailed
from octopis.files import check_writable, remove_drafts, whole_folder, write_json
from octopis.pipeline.runs.run_table import Run, RunTable
from octopis.pipeline.spark.session import ship
from octopis.scenario.example import write_example
from octopis.scenario.folder import DOCUMENT, digest_of, read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.run import run as run_scenario
from octopis.trace import Level, read_summary
from octopis.trace.summary import FILE as SUMMARY

SCENARIOS = "scenarios"
FAILED = "failed"
ERROR = "error.json"
REPORT = "sweep.json"


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one run went."""

    run: str
    algorithm: str
    scenario: str
    state: Literal["done", "skipped", "failed"]
    error: str = ""
    took_s: float = 0.0


def sweep(spark: SparkSession, table: RunTable, out: Path) -> list[RunReport]:
    """Do all runs that are not done yet, and return how each went, in the table's order."""
    out = out.absolute()
    waiting = prepare(table, out)
    try:
        return _sweep(spark, table, waiting, out)
    finally:
        remove_drafts(out)  # a task that is stopped has no time to tidy up


def _sweep(spark: SparkSession, table: RunTable, waiting: list[Run], out: Path) -> list[RunReport]:
    scenarios = {run.plan.name: run for run in waiting if run.plan and not _has_scenario(out, run)}
    made = _each_in_a_task(spark, list(scenarios.values()), lambda run: make_scenario(run, out))
    unmade = {name: error for name, (error, _) in zip(scenarios, made, strict=True) if error}
    able = [run for run in waiting if run.plan is None or run.plan.name not in unmade]
    done = _each_in_a_task(spark, able, lambda run: simulate(run, table.level, out))
    results = {run.name: result for run, result in zip(able, done, strict=True)}
    reports = [
        _report(run, out, waiting, results, unmade.get(run.plan.name if run.plan else "", ""))
        for run in table.runs
    ]
    write_json(out / REPORT, reports)
    return reports


def prepare(table: RunTable, out: Path) -> list[Run]:
    """Return the runs that are not done yet, and tidy up what an interrupted sweep left.

    Raises InvalidConfiguration where `out` cannot be written, or holds a run of the same name
    that was another.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot write {out}: {failure.strerror}") from failure
    remove_drafts(out)
    return check_runs(table, out)


def check_runs(table: RunTable, out: Path) -> list[Run]:
    """Return the runs that are not done yet; raise where `out` is not for this table."""
    check_writable(out)
    waiting = []
    for run in table.runs:
        if not (out / run.name / SUMMARY).exists():
            waiting.append(run)
            continue
        before = read_summary(out / run.name)
        digest = digest_of(scenario_folder(run, out))
        if (before.scenario_digest, before.level) != (digest, table.level.value):
            raise InvalidConfiguration(
                f"{out / run.name} was run from another scenario or at another level: "
                "remove it, or choose another folder"
            )
    for run in waiting:
        if run.plan:
            _has_scenario(out, run)
    return waiting


def scenario_folder(run: Run, out: Path) -> Path:
    """Return where a run's scenario is, or will be."""
    if run.scenario is not None:
        return run.scenario
    assert run.plan is not None
    return out / SCENARIOS / run.plan.name


def make_scenario(run: Run, out: Path) -> None:
    """Make the scenario of a run's plan."""
    with whole_folder(scenario_folder(run, out)) as folder:
        write_example(_shared_plan(run), folder)


def simulate(run: Run, level: Level, out: Path) -> None:
    """Run one simulation; its trace appears when it is whole."""
    scenario = read_scenario(scenario_folder(run, out)).with_algorithm(run.algorithm)
    failed = out / FAILED / run.name
    shutil.rmtree(failed, ignore_errors=True)
    with whole_folder(out / run.name) as folder:
        try:
            run_scenario(scenario, folder, level=level)
        except OctopisError as failure:
            failed.parent.mkdir(exist_ok=True)
            shutil.copytree(folder, failed)  # a violated law is replayed from here
            write_json(failed / ERROR, {"error": str(failure)})
            raise


def _each_in_a_task(
    spark: SparkSession, runs: list[Run], work: Callable[[Run], None]
) -> list[tuple[str, float]]:
    """Do the work for each run in a task of its own; return errors (or "") and seconds."""
    if not runs:
        return []
    shipped = ship(spark, runs)

    def act(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                start = time.perf_counter()
                error = _guarded(work, shipped()[number])
                took_s = time.perf_counter() - start
                yield pa.RecordBatch.from_pydict(
                    {"number": [number], "error": [error], "took_s": [took_s]}
                )

    tasks = spark.range(0, len(runs), 1, len(runs))
    rows = tasks.mapInArrow(act, "number long, error string, took_s double").toArrow().to_pylist()
    found = {row["number"]: (row["error"], row["took_s"]) for row in rows}
    if len(found) != len(runs):
        raise OperationFailed(f"Spark brought back {len(found)} of {len(runs)} results")
    return [found[number] for number in range(len(runs))]


def _guarded(work: Callable[[Run], None], run: Run) -> str:
    """Do the work; return what went wrong, so that the others go on."""
    try:
        work(run)
    except OctopisError as failure:
        return str(failure)
    except Exception as failure:  # noqa: BLE001 - one broken run must not end the others
        return f"internal error ({type(failure).__name__}: {failure})"
    return ""


def _has_scenario(out: Path, run: Run) -> bool:
    """Tell whether a run's scenario is made; raise InvalidConfiguration where it is another."""
    document = scenario_folder(run, out) / DOCUMENT
    if not document.exists():
        return False
    if document.read_text(encoding="utf-8") != _shared_plan(run).document():
        raise InvalidConfiguration(
            f"{document.parent} holds another scenario of that name: "
            "remove it, or choose another folder"
        )
    return True


def _shared_plan(run: Run) -> ScenarioPlan:
    """Return the plan without its algorithm, which each run sets for itself."""
    assert run.plan is not None
    return msgspec.structs.replace(run.plan, routing=RoutingOptions(Algorithm.SNR))


def _report(
    run: Run,
    out: Path,
    waiting: list[Run],
    results: dict[str, tuple[str, float]],
    unmade: str,
) -> RunReport:
    error, took_s = results.get(run.name, (unmade, 0.0))
    skipped = run not in waiting
    return RunReport(
        run=run.name,
        algorithm=run.algorithm.value,
        scenario=str(scenario_folder(run, out)),
        state="skipped" if skipped else "failed" if error else "done",
        error="" if skipped else error,
        took_s=round(took_s, 3),
    )


def scenario_of(trace: Path) -> Path | None:
    """Return the scenario of a trace that a sweep wrote, or None for other traces."""
    report = trace.absolute().parent / REPORT
    try:
        runs = msgspec.json.decode(report.read_bytes(), type=list[RunReport])
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as failure:
        raise InvalidConfiguration(f"{report} is not a sweep's report: {failure}") from failure
    return next((Path(run.scenario) for run in runs if run.run == trace.absolute().name), None)
