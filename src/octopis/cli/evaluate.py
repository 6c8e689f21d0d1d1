"""`octopis evaluate`: the paper's evaluation, from quotes to the report."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from octopis.cli import options, output
from octopis.cli.evaluate_output import print_report, shown_progress
from octopis.errors import OperationFailed
from octopis.evaluation.evaluate import Evaluation, check_quotes
from octopis.evaluation.experiments import Size
from octopis.evaluation.folders import Request, claim_folder
from octopis.evaluation.report import Report, failed
from octopis.pipeline.session import open_spark
from octopis.version import __version__
from octopis.workload.costs import Profile

SEEDS_MAX = 100


def evaluate(  # noqa: PLR0913, PLR0917 - each is an option of the command
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="The paper's size (most of an hour on 2 cores), or the same shape in minutes.",
        ),
    ] = False,
    seeds: Annotated[
        int, typer.Option(min=1, max=SEEDS_MAX, help="Run everything with so many seeds.")
    ] = 1,
    profile: options.CostProfile = "paper",
    quotes: Annotated[
        list[Path] | None,
        typer.Option(
            help="Stock quotes: CSV, Parquet or PADRES text, a folder of these, or one of "
            "`octopis workload ingest`. [seeded synthetic quotes]"
        ),
    ] = None,
    master: options.Master = None,
    out: Annotated[
        Path, typer.Option(help="The folder for everything; what is done there stays done.")
    ] = Path("out/evaluation"),
    as_json: output.JsonFlag = False,
) -> None:
    """Run the paper's experiments under BID, SNR and DNR, and set the results beside the paper's.

    Workload, ground truth, simulations and metrics run on Spark. Stopped and started again with
    the same options, it goes on where it was. The report is one HTML page, with its figures and
    tables beside it.
    """
    check_quotes(quotes or [])
    costs = options.load_profile(profile)
    request = Request(
        version=__version__,
        size=Size.FULL if full else Size.QUICK,
        seeds=seeds,
        profile=profile,
        costs=costs.costs,
        quotes=[str(path.absolute()) for path in quotes or []],
    )
    report, page = _evaluate(request, costs, out, master)
    if as_json:
        output.print_json(
            {
                "page": page,
                "exact": [asdict(each) for each in report.exact],
                "claims": [each.as_document() for each in report.outcomes],
            }
        )
    else:
        print_report(report, page)
    broken = failed(report.exact)
    if broken:
        raise OperationFailed(
            f"{len(broken)} of what must hold exactly does not; the first: {broken[0]}"
        )


def _evaluate(
    request: Request, costs: Profile, out: Path, master: str | None
) -> tuple[Report, Path]:
    """Do what is not done yet, and return the report, and where its page is."""
    folders = claim_folder(out, request)
    with shown_progress() as told:
        evaluation = Evaluation(folders, request, costs, told)
        if not evaluation.is_measured:
            with open_spark(master) as spark:
                evaluation.run(spark)
        with evaluation.reporting():
            report = Report(folders, request, costs, evaluation.measures())
            return report, report.write()
