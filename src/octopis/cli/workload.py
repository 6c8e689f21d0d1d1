"""`octopis workload`: from data to a scenario and its ground truth, on Spark."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from pyspark.sql import SparkSession

from octopis.cli import options, output
from octopis.cli.spark import spark_for
from octopis.core.filters import DIALECTS, parse_filter
from octopis.errors import InvalidConfiguration
from octopis.files import check_new_folder
from octopis.pipeline.ingest.folder import (
    Data,
    IngestReport,
    check_ingested,
    read_data,
)
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
from octopis.pipeline.scenarios.build import BuildReport, Choices, build
from octopis.pipeline.scenarios.estimate import estimate
from octopis.pipeline.scenarios.recording import Replay
from octopis.scenario.folder import read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.wanted import check_names, read_wanted

app = typer.Typer(
    help="From data to scenarios, on Spark: ingest, estimate, build, truth.", no_args_is_help=True
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
            help="The columns that become attributes, such as at, id=device.id, temp:number (with "
            "commas alone between them); '*' is all. Types: text, number, integer, boolean, date, "
            "time. [found in the data]",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file that says more: what is required, derived, checked. [quotes]"
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
    wanted = _mapping(attributes, mapping, times)
    _check_sources(paths, table, synthetic and wanted)
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


def _check_sources(paths: list[Path] | None, table: str | None, made: Mapping | bool) -> None:
    """Raise InvalidConfiguration unless one source is named; `made` rows are quotes."""
    if (bool(paths), table is not None, bool(made)).count(True) != 1:
        raise InvalidConfiguration("give files to read, or --synthetic, or --table: one of them")
    if made and made != quotes_mapping():
        raise InvalidConfiguration("--synthetic makes quotes: it takes no other attributes")


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
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            "--quotes",
            help="A folder of `octopis workload ingest`. [seeded synthetic quotes]",
        ),
    ] = None,
    subscriptions: Annotated[
        Path | None,
        typer.Option(
            help="Subscriptions of your own, in place of --subscribers and --selectivity: a text "
            "with a filter in each line, or CSV or Parquet with filter, subscriber, broker. "
            "[drawn from the data]"
        ),
    ] = None,
    publisher_by: Annotated[
        str | None,
        typer.Option(
            help="An attribute: each of its values is a publisher, in place of --publishers, and "
            "publishes all of its rows."
        ),
    ] = None,
    time_by: Annotated[
        str | None,
        typer.Option(
            help="A time: rows are published as far apart as they are by it, in place of "
            "--per-minute and --notifications."
        ),
    ] = None,
    speed: Annotated[
        float, typer.Option(help="With --time-by: how many times as fast as it was.")
    ] = 1.0,
    plan: ScenarioPlan,
    master: options.Master = None,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Make a scenario of ingested rows: who subscribes to what, who publishes which and when."""
    plan = msgspec.structs.replace(plan, name=out.name)
    plan.check()
    if speed != 1 and time_by is None:
        raise InvalidConfiguration("--speed goes with --time-by")
    check_new_folder(out)
    if data:
        check_ingested(data)
    wanted = read_wanted(subscriptions, plan.topology.scot) if subscriptions else None
    choices = Choices(wanted, Replay(publisher_by, time_by, speed))
    with spark_for("building", master, conf) as spark:
        report = build(spark, _rows(spark, data, plan.seed), plan, out, choices)
    if as_json:
        output.print_json(msgspec.to_builtins(report))
        return
    _print_built(plan.name, report)
    output.say(f"Scenario: {out}. Next: octopis workload truth {out}, octopis sim run {out}")


def _rows(spark: SparkSession, folder: Path | None, seed: int) -> Data:
    if folder is None:
        return synthetic_quotes(spark, seed)
    return read_data(spark, folder)


@app.command(name="estimate")
def estimate_filter(  # noqa: PLR0913, PLR0917 - each is an option of the command
    filter_: Annotated[str, typer.Argument(metavar="FILTER", help="What somebody may ask for.")],
    data: Annotated[Path, typer.Option(help="A folder of `octopis workload ingest`.")],
    dialect: Annotated[str, typer.Option(help=f"One of {', '.join(DIALECTS)}.")] = "sql",
    master: options.Master = None,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Say how many rows of the data a filter would match, before anybody subscribes."""
    asked = parse_filter(filter_, dialect)
    known = check_ingested(data).attributes
    check_names(asked, known, str(data))
    with spark_for("matching", master, conf) as spark:
        found = estimate(spark, read_data(spark, data), asked)
    if as_json:
        output.print_json({**msgspec.to_builtins(found), "share": found.share})
        return
    facts: list[tuple[str, object]] = [
        ("rows", found.rows),
        ("matched", found.matches),
        ("share", f"{100 * found.share:.3g}%"),
    ]
    output.print_facts(found.filter, facts)


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
        ("rows", report.rows),
        ("... that lack an attribute they need, set aside", report.set_aside),
        ("... that made the subscriptions", report.sampled),
        ("... held back for publishing", report.held_back),
        ("publishers", report.publishers),
        ("subscriptions", report.subscriptions),
        ("notifications", report.notifications),
    ]
    output.print_facts(name, facts)
