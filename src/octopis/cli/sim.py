"""`octopis sim`: run overlays in virtual time, and show how it went."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import replace
from rich.progress import (
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from octopis.cli import options, output
from octopis.cli.soak import soak
from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration, LawViolated
from octopis.scenario.dead import draw_dead
from octopis.scenario.document import CutLink, DeadBroker, SlowLink
from octopis.scenario.example import write_example
from octopis.scenario.folder import Scenario, read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.ledger import Progress as OnProgress
from octopis.simulator.replay import moments_before, read_evidence
from octopis.simulator.run import delay_quantiles, run
from octopis.trace import Level, RunSummary

app = typer.Typer(
    help="Overlays in virtual time: example, run, replay, soak.",
    no_args_is_help=True,
)

_DELAYS = {"delay_p50_ns": "delay, median", "delay_p99_ns": "delay, 99th percentile"}


Dead = Annotated[
    list[str] | None,
    typer.Option(help="A broker that is dead all the time, with its links and clients, as b,2."),
]


@app.command()
@options.takes_plan()
def example(
    *,
    out: Annotated[Path, typer.Option(help="The folder to write; new or empty.")] = Path(
        "out/scenario"
    ),
    plan: ScenarioPlan,
    slow: Annotated[
        list[str] | None,
        typer.Option(
            help="A slow link: source, target, how many times slower, from and until when in ms, "
            "as b,2:b,0:10:500:1500."
        ),
    ] = None,
    cut: Annotated[
        list[str] | None,
        typer.Option(
            help="A link that is down for a while: source, target, from and until when in ms, as "
            "b,2:b,0:500:1500."
        ),
    ] = None,
    dead: Dead = None,
) -> None:
    """Write a scenario of stock quotes: subscribers of 2% of them, placed at random."""
    faults = (
        *map(_slow_link, slow or ()),
        *map(_cut_link, cut or ()),
        *map(DeadBroker, dead or ()),
    )
    write_example(replace(plan, name=out.resolve().name, faults=faults), out)
    output.say(f"Scenario: {out}. Next: octopis sim run {out}")


@app.command(name="run")
def run_scenario(  # noqa: PLR0913, PLR0917 - each is an option of the command
    scenario: options.ScenarioFolder,
    out: Annotated[
        Path | None, typer.Option(help="The folder for the trace; new or empty. [out/sim/...]")
    ] = None,
    level: Annotated[
        Level, typer.Option(help="How much is written down; counts are exact at every level.")
    ] = Level.DELIVERIES,
    algorithm: Annotated[
        Algorithm | None,
        typer.Option(
            help="Route by this one, whatever the scenario says. " + options.WHAT_ALGORITHMS_ARE
        ),
    ] = None,
    real_brokers: Annotated[
        bool,
        typer.Option("--real-brokers", help="Let routing.Broker decide: the same trace, slower."),
    ] = False,
    dead: Dead = None,
    dead_share: Annotated[
        float,
        typer.Option(help="A share of all brokers that are dead, drawn by the scenario's seed."),
    ] = 0,
    as_json: output.JsonFlag = False,
) -> None:
    """Run a scenario in virtual time and leave its trace."""
    loaded = read_scenario(scenario)
    scot = loaded.topology.scot
    drawn = draw_dead(scot, dead_share, loaded.document.scenario.seed)
    loaded = loaded.with_dead([*map(scot.broker, dead or ()), *drawn])
    if algorithm is not None:
        loaded = loaded.with_algorithm(algorithm)
    folder = out or _usual_folder(loaded)
    try:
        with virtual_progress() as progress:
            summary = run(loaded, folder, level=level, real_brokers=real_brokers, progress=progress)
    except KeyboardInterrupt:
        if folder.exists():
            sys.stderr.write(f"octopis: a partial trace, marked as such, is in {folder}\n")
        raise
    except LawViolated:
        sys.stderr.write(f"octopis: to see the moments before, octopis sim replay {folder}\n")
        raise
    delays = delay_quantiles(folder)
    if as_json:
        output.print_json(msgspec.to_builtins(summary) | delays)
    else:
        print_summary(summary, folder, delays)


@app.command()
def replay(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="The folder of a run that violated a law.")
    ],
    scenario: Annotated[
        Path | None, typer.Option(help="Where the scenario is now, if it was moved.")
    ] = None,
    last_ms: Annotated[
        float, typer.Option(help="Show the broker's messages of so many milliseconds.")
    ] = 10,
    as_json: output.JsonFlag = False,
) -> None:
    """Run a scenario again up to the violation, and show the messages just before it."""
    if not 0 <= last_ms <= 1e9:
        raise InvalidConfiguration(f"--last-ms must be from 0 to 1e9, not {last_ms}")
    evidence = read_evidence(trace)
    folder = scenario or Path(evidence.scenario)
    if not folder.exists():
        raise InvalidConfiguration(f"the scenario is no longer in {folder}: say --scenario PATH")
    loaded = read_scenario(folder).with_algorithm(evidence.algorithm)
    if loaded.digest != evidence.scenario_digest:
        raise InvalidConfiguration(f"{loaded.folder} is not the scenario that was run: it differs")
    loaded = loaded.with_dead(map(loaded.topology.scot.broker, evidence.dead))
    with TemporaryDirectory() as parent:
        again = Path(parent) / "trace"
        try:
            with virtual_progress() as progress:
                run(
                    loaded,
                    again,
                    level=Level.FULL,
                    real_brokers=evidence.real_brokers,
                    progress=progress,
                )
        except LawViolated as violation:
            moments = moments_before(again, read_evidence(again), last_ms)
            if as_json:
                output.print_json({"violation": str(violation), "messages": moments})
            else:
                print_moments(str(violation), moments)
            return
    raise InvalidConfiguration("this version runs the scenario without a violation")


app.command()(soak)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


@contextmanager
def virtual_progress() -> Iterator[OnProgress]:
    """Show how far a run is, at what rate, and in its virtual time."""
    with output.progress_bar(
        MofNCompleteColumn(),
        _Rate(),
        TextColumn("virtual {task.fields[virtual]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    ) as tell:

        def on_progress(phase: str, done: int, total: int, now_ns: int) -> None:
            tell(phase, done, total, virtual=f"{now_ns / 1e9:,.1f} s")

        yield on_progress


def print_summary(summary: RunSummary, folder: Path, delays: dict[str, int | None]) -> None:
    """Print how a run went."""
    duration_s = max(0, summary.end_ns - summary.begin_ns) / 1e9
    facts: list[tuple[str, object]] = [
        ("algorithm", summary.algorithm),
        ("brokers", summary.brokers),
        ("subscriptions", summary.subscriptions),
        ("notifications", summary.notifications),
        ("deliveries", summary.deliveries),
        ("deliveries lost", summary.deliveries_lost),
        *((label, _shown_delay(delays[name])) for name, label in _DELAYS.items()),
        ("subscription IMs", summary.subscription_ims),
        ("... of which duplicates", summary.subscription_duplicates),
        ("notification IMs", summary.notification_ims),
        ("longest queue (messages)", summary.queue_length_max),
        ("longest wait for a broker", f"{summary.input_wait_max_ns / 1e6:,.3f} ms"),
        ("virtual time", f"{duration_s:,.3f} s from the first notification due to the last copy"),
    ]
    if summary.dnr_cases:
        cases = ", ".join(f"{name}: {count:,}" for name, count in summary.dnr_cases.items())
        is_tnr = summary.algorithm == Algorithm.TNR.value
        facts.append(("copies by reason" if is_tnr else "cases of dynamic routing", cases))
    if summary.dead_brokers:
        facts.append(("dead brokers", ", ".join(summary.dead_brokers)))
    if summary.sent_again is not msgspec.UNSET:
        facts.append(("sent again", summary.sent_again))
        facts.append(("... and were there before", summary.duplicates))
    if summary.given_up:
        facts.append(("given up", summary.given_up))
    if summary.sync_ims:
        facts.append(("IMs of links that came back", summary.sync_ims))
    output.print_facts(f"{summary.scenario}, seed {summary.seed}", facts)
    for bound in summary.queue_bounds:
        output.say(
            f"The queue from {bound.source} to {bound.target} reached its bound at "
            f"{bound.first_ns / 1e9:,.3f} s of virtual time; messages lost by {bound.policy}: "
            f"{bound.dropped:,}."
        )
    output.say(f"Trace: {folder}")


def _shown_delay(nanoseconds: int | None) -> str:
    return "not recorded" if nanoseconds is None else f"{nanoseconds / 1e6:,.3f} ms"


def print_moments(violation: str, messages: list[dict[str, Any]]) -> None:
    """Print the messages just before a violation."""
    output.say(violation)
    columns = ("s", "from", "to", "link", "message", "about", "queue", "carries", "reason", "fate")
    output.print_table("The moments before", columns, [_moment(each) for each in messages])


def _moment(row: dict[str, Any]) -> tuple[object, ...]:
    about = row["subscription"] or f"{row['publisher']} {row['sequence']}"
    carries = row["cbv_p"] or (f"{row['bids']} brokers" if row["bids"] else "")
    return (
        f"{row['enqueued_ns'] / 1e9:.6f}",
        row["source"],
        row["target"],
        row["link_kind"],
        row["message"],
        "" if row["message"] == "sync" else about,
        row["queue_length"],
        carries,
        row["reason"],
        row["fate"],
    )


def _usual_folder(scenario: Scenario) -> Path:
    document = scenario.document
    name = re.sub(r"[^\w.-]+", "-", document.scenario.name).strip(".-") or "scenario"
    return Path("out/sim") / f"{name}-{document.routing.algorithm.value}"


def _slow_link(text: str) -> SlowLink:
    parts = text.split(":")
    try:
        source, target, factor, begin_ms, end_ms = parts
        return SlowLink(source, target, float(factor), float(begin_ms), float(end_ms))
    except ValueError as failure:
        reason = f"--slow takes SOURCE:TARGET:FACTOR:BEGIN_MS:END_MS, not {text!r}"
        raise InvalidConfiguration(reason) from failure


def _cut_link(text: str) -> CutLink:
    parts = text.split(":")
    try:
        source, target, begin_ms, end_ms = parts
        return CutLink(source, target, float(begin_ms), float(end_ms))
    except ValueError as failure:
        reason = f"--cut takes SOURCE:TARGET:BEGIN_MS:END_MS, not {text!r}"
        raise InvalidConfiguration(reason) from failure
