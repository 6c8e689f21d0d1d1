"""`octopis workload`: from data to a scenario and its ground truth, on Spark."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from octopis.cli import options, output
from octopis.cli.spark import spark_for
from octopis.errors import InvalidConfiguration
from octopis.files import check_new_folder
from octopis.pipeline.ingest.folder import IngestReport, check_ingested, read_quotes
from octopis.pipeline.ingest.headers import check_headers
from octopis.pipeline.ingest.ingest import (
    SPARK_SETTINGS,
    ingest,
    ingest_synthetic,
    ingest_table,
    open_table,
)
from octopis.pipeline.ingest.mapping import (
    Mapping,
    load_mapping,
    mapping_of,
    quotes_mapping,
    with_times,
)
from octopis.pipeline.ingest.quotes import DAYS, synthetic_quotes
from octopis.pipeline.scenarios import truth as ground_truth
from octopis.pipeline.scenarios.build import BuildReport, build
from octopis.scenario.folder import read_scenario
from octopis.scenario.plan import ScenarioPlan

app = typer.Typer(
    help="From quotes to scenarios, on Spark: ingest, build, truth.", no_args_is_help=True
)

QuotesSeed = Annotated[int, typer.Option("--quotes-seed", help="Seed of the synthetic quotes.")]


class TimesOption(Enum):
    """How times are published."""

    ISO = "iso"
    NS = "ns"


Days = Annotated[int, typer.Option(min=2, help="Days of synthetic quotes, 500 a day.")]


@app.command(name="ingest")
def ingest_data(  # noqa: PLR0913, PLR0917 - each is an option of the command
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="CSV, JSON lines, Parquet or PADRES text, plain or .gz, or folders of these.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write; new.")] = Path("out/quotes"),
    attributes: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME=]COLUMN[:TYPE],...",
            help="The columns that become attributes, such as at,id=device.id,temp:number; '*' is "
            "all of them. Types: text, number, integer, boolean, date, time. [found in the data]",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file that says more: what is required, derived, checked, left out. [quotes]"
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="A table or view that Spark knows, in place of files: db.readings."),
    ] = None,
    times: Annotated[
        TimesOption | None,
        typer.Option(
            help="Times become ISO text in UTC, or integers: nanoseconds since 1970. [iso]"
        ),
    ] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Make seeded quotes instead of reading any.")
    ] = False,
    quotes_seed: QuotesSeed = 1,
    days: Days = DAYS,
    master: options.Master = None,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Read rows of any shape, set aside what is not sound, and derive what subscriptions ask for.

    Without --attributes and --mapping the rows are stock quotes.
    """
    if (bool(paths), table is not None, synthetic).count(True) != 1:
        raise InvalidConfiguration("give files to read, or --synthetic, or --table: one of them")
    wanted = _mapping(attributes, mapping, times)
    if synthetic and wanted != quotes_mapping():
        raise InvalidConfiguration("--synthetic makes quotes: it takes no other attributes")
    check_new_folder(out)
    check_headers(paths or [], wanted)
    with spark_for("ingesting", master, conf, defaults=SPARK_SETTINGS) as spark:
        if synthetic:
            report = ingest_synthetic(spark, quotes_seed, days, out)
        elif table is not None:
            report = ingest_table(spark, open_table(spark, table), table, out, wanted)
        else:
            report = ingest(spark, paths or [], out, wanted)
    if as_json:
        output.print_json(msgspec.to_builtins(report))
        return
    _print_ingested(report)
    output.say(f"{report.name.capitalize()}: {out}. Next: octopis workload build --data {out}")


def _mapping(attributes: str | None, path: Path | None, times: TimesOption | None) -> Mapping:
    if attributes is not None and path is not None:
        raise InvalidConfiguration("--attributes and --mapping exclude each other: use the file")
    if attributes is not None:
        found = mapping_of(attributes)
    else:
        found = load_mapping(path) if path else quotes_mapping()
    return with_times(found, None if times is None else times.value)


@app.command(name="build")
@options.takes_plan(topology="paper", subscribers=500, publishers=100, notifications=1_000)
def build_scenario(  # noqa: PLR0913 - each is an option of the command
    *,
    out: Annotated[Path, typer.Option(help="The folder to write; new.")] = Path("out/scenario"),
    quotes: Annotated[
        Path | None,
        typer.Option(help="A folder of `octopis workload ingest`. [seeded synthetic quotes]"),
    ] = None,
    plan: ScenarioPlan,
    master: options.Master = None,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Make a scenario: subscriptions from the quotes' quantiles, publishers, placement."""
    plan = msgspec.structs.replace(plan, name=out.name)
    plan.check()
    check_new_folder(out)
    if quotes:
        check_ingested(quotes)
    with spark_for("building", master, conf) as spark:
        rows = read_quotes(spark, quotes) if quotes else synthetic_quotes(spark, plan.seed)
        report = build(spark, rows, plan, out)
    if as_json:
        output.print_json(msgspec.to_builtins(report))
        return
    _print_built(plan.name, report)
    output.say(f"Scenario: {out}. Next: octopis workload truth {out}, octopis sim run {out}")


@app.command()
def truth(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario's folder.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder to write; new. [SCENARIO/truth]")
    ] = None,
    master: options.Master = None,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Work out which subscription must get which notification, and at which brokers."""
    folder = out or scenario / ground_truth.FOLDER
    loaded = read_scenario(scenario)
    check_new_folder(folder)
    with spark_for("matching", master, conf) as spark:
        report = ground_truth.write_truth(spark, loaded, folder)
    if as_json:
        output.print_json(msgspec.to_builtins(report))
        return
    facts: list[tuple[str, object]] = [
        ("notifications", report.notifications),
        ("subscriptions", report.subscriptions),
        ("deliveries due", report.pairs),
    ]
    output.print_facts(f"Ground truth of {loaded.document.scenario.name}", facts)
    output.say(f"Ground truth: {folder}")


def _print_ingested(report: IngestReport) -> None:
    facts: list[tuple[str, object]] = [
        ("rows read", report.read),
        ("accepted", report.accepted),
        ("quarantined", report.quarantined),
    ]
    facts += [(f"... {reason}", count) for reason, count in report.reasons.items()]
    facts += [(name, known.kind.value) for name, known in report.attributes.items()]
    output.print_facts(report.name.capitalize(), facts)


def _print_built(name: str, report: BuildReport) -> None:
    facts: list[tuple[str, object]] = [
        ("quotes", report.quotes),
        ("... without a previous close, set aside", report.without_previous_close),
        ("... that made the subscriptions", report.sampled),
        ("... held back for publishing", report.held_back),
        ("subscriptions", report.subscriptions),
        ("notifications", report.notifications),
    ]
    output.print_facts(name, facts)
