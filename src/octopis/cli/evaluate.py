"""`octopis evaluate`: the paper's evaluation, from quotes to the report."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.progress import TextColumn

from octopis.cli import options, output
from octopis.cli.spark import deaths_explained
from octopis.cli.topology import load
from octopis.core.topology import format_topology
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.evaluation.agenda import OnProgress, Progress
from octopis.evaluation.claims import Outcome
from octopis.evaluation.claims_section import (
    OURS,
    OVER_SEEDS,
    THE_PAPERS,
    VERDICTS,
    Kind,
    against,
)
from octopis.evaluation.evaluate import Evaluation, check_quotes
from octopis.evaluation.experiments import ALL, OVERLAY, EvaluationSize
from octopis.evaluation.folders import Request, claim_folder
from octopis.evaluation.report import Report, failed
from octopis.evaluation.tables import shown, value_over_seeds
from octopis.pipeline.spark.session import open_spark
from octopis.pipeline.spark.settings import check_master, parse_conf
from octopis.scenario.costs import Profile
from octopis.signals import stops_as_interrupts
from octopis.version import __version__

SEEDS_MAX = 100
_LINE_EVERY_S = 30.0

OpenSpark = Callable[[], AbstractContextManager[SparkSession]]


def evaluate(  # noqa: PLR0913, PLR0917 - each is an option of the command
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="The paper's size (about an hour on 2 cores), or the same shape in minutes.",
        ),
    ] = False,
    seeds: Annotated[
        int, typer.Option(min=1, max=SEEDS_MAX, help="With so many seeds; more may be added later.")
    ] = 1,
    profile: options.CostProfile = "paper",
    quotes: Annotated[
        list[Path] | None,
        typer.Option(
            help="Stock quotes: CSV, Parquet or PADRES text, a folder of these, or one of "
            "`octopis workload ingest`. [seeded synthetic quotes]"
        ),
    ] = None,
    topology: Annotated[
        str, typer.Option(help="The overlay: a name from `octopis topology list`, or a TOML file.")
    ] = OVERLAY,
    master: options.Master = None,
    conf: options.Conf = None,
    out: Annotated[
        Path, typer.Option(help="The folder for everything; what is done there stays done.")
    ] = Path("out/evaluation"),
    as_json: output.JsonFlag = False,
) -> None:
    """Run the paper's experiments under BID, SNR, DNR and our TNR, and compare with the paper.

    Workload, ground truth, simulations and metrics run on Spark. Stopped and started again with
    the same options, it goes on where it was. The report is one HTML page, with its figures and
    tables beside it.
    """
    settings = parse_conf(conf or [])
    if master is not None:
        check_master(master)
    check_quotes(quotes or [])
    costs = options.load_profile(profile)
    request = Request(
        version=__version__,
        size=EvaluationSize.FULL if full else EvaluationSize.QUICK,
        seeds=seeds,
        profile=profile,
        costs=costs.costs,
        quotes=[str(path.absolute()) for path in quotes or []],
        topology=_overlay(topology),
        algorithms=tuple(each.value for each in ALL),
    )
    with deaths_explained(), stops_as_interrupts():
        report, page = _evaluate(request, costs, out, partial(open_spark, master, settings))
    if as_json:
        _print_json(request, report, page)
    else:
        print_report(report, page)
    _check_exact(report)


def _overlay(name: str) -> str:
    """Return the document of the overlay that the user named."""
    found = load(name)
    if len(found.scot.clusters) < 2:
        raise InvalidConfiguration(
            f"{name} has a single cluster: all algorithms would route alike, and nothing could be "
            "compared; take an overlay of two clusters or more"
        )
    return format_topology(found)


def _evaluate(
    request: Request, costs: Profile, out: Path, open_session: OpenSpark
) -> tuple[Report, Path]:
    """Do what is not done yet, and return the report, and where its page is."""
    folders = claim_folder(out, request)
    with shown_progress() as on_progress:
        evaluation = Evaluation(folders, request, costs, on_progress)
        if not evaluation.is_measured:
            with open_session() as spark:
                evaluation.run(spark)
        with evaluation.reporting():
            report = Report(folders, request, costs, evaluation.measures())
            return report, report.write()


@contextmanager
def shown_progress() -> Iterator[OnProgress]:
    """Show how far it is on standard error: a bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    columns = TextColumn("{task.percentage:>3.0f}%"), TextColumn("{task.fields[detail]}")
    with output.progress_bar(*columns, transient=True) as tell:
        yield lambda now: tell(now.stage, now.share, 1.0, detail=_detail(now))


def _lines() -> OnProgress:
    last_stage, last_s = "", 0.0

    def on_progress(progress: Progress) -> None:
        nonlocal last_stage, last_s
        now = time.monotonic()
        if progress.stage != last_stage or now - last_s >= _LINE_EVERY_S:
            last_stage, last_s = progress.stage, now
            sys.stderr.write(f"{progress.stage}: {progress.share:.0%}, {_detail(progress)}\n")
            sys.stderr.flush()

    return on_progress


def _detail(progress: Progress) -> str:
    left = f", about {_clock(progress.left_s)} left" if progress.left_s >= 1 else ""
    return f"{progress.done} of {progress.total} done, {_clock(progress.elapsed_s)} so far{left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _check_exact(report: Report) -> None:
    broken = failed(report.exact)
    if broken:
        raise OperationFailed(
            f"{len(broken)} of what must hold exactly does not; the first: {broken[0]}"
        )


def _print_json(request: Request, report: Report, page: Path) -> None:
    output.print_json(
        {
            "page": page,
            "size": request.size.value,
            "seeds": request.seeds,
            "exact": [asdict(each) for each in report.exact],
            "claims": [each.as_document() for each in report.outcomes],
            "own_claims": [each.as_document() for each in report.target_outcomes],
        }
    )


def print_report(report: Report, page: Path) -> None:
    """Print what must hold, the paper's claims and ours, and say where the page is."""
    output.print_table(
        "What must hold exactly",
        ("what", "found", "holds"),
        [(each.text, each.found, each.holds) for each in report.exact],
    )
    output.say("")
    for caution in report.cautions:
        output.say(f"{caution}\n")
    _print_claims(THE_PAPERS, report.outcomes, has_seeds=report.has_seeds)
    output.say("")
    _print_claims(OURS, report.target_outcomes, has_seeds=report.has_seeds)
    output.say(f"\nReport: {page} (reasons, figures, sensitivity); figures and tables beside it.")


def _print_claims(kind: Kind, outcomes: list[Outcome], *, has_seeds: bool) -> None:
    over_seeds = (OVER_SEEDS,) if has_seeds else ()
    output.print_table(
        kind.title,
        ("claim", "", kind.against, "ours", *over_seeds, kind.verdict),
        [
            (
                each.claim.text,
                each.claim.unit,
                against(each),
                shown(each.ours, each.claim.unit),
                *(value_over_seeds(each) for _ in over_seeds),
                VERDICTS[each.verdict][1],
            )
            for each in outcomes
        ],
    )
