"""`octopis bench`: measure OctopiS on this machine."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from octopis.benchmarks import broker, calibration, hostile, matching, routing
from octopis.benchmarks.attack import measures
from octopis.benchmarks.attack import run as attack
from octopis.benchmarks.attack.attackers import ATTACKS
from octopis.benchmarks.kills import run as kills
from octopis.cli import options, output
from octopis.cli.topology import load
from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration
from octopis.overlay.supervisor import cores
from octopis.report import machine
from octopis.scenario.costs import format_profile
from octopis.signals import stops_as_interrupts

app = typer.Typer(
    help="Measure OctopiS here: matching, routing, simulator, faults, broker, attack, kills, "
    "pipeline.",
    no_args_is_help=True,
)
_NOTES_SHOWN = 3
SeedOption = Annotated[int, typer.Option(help="Seed of the workload.")]


@app.command(name="matching")
def bench_matching(
    sizes: Annotated[
        str, typer.Option(help="How many subscriptions, separated by commas.")
    ] = "1000,10000,100000",
    full: Annotated[
        bool, typer.Option("--full", help="Also 1,000,000 subscriptions: minutes and 4 GB.")
    ] = False,
    hostile_too: Annotated[
        bool, typer.Option("--hostile", help="Also filters that are made to exhaust an index.")
    ] = False,
    seed: SeedOption = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure the matching index: 10 attributes, filters of 2 to 4 ranges, 2% selectivity."""
    counts = [*_counts(sizes), *([1_000_000] if full else [])]
    figures = []
    for count, found in zip(counts, matching.run(counts, seed), strict=True):
        sys.stderr.write(f"measured {count:,} subscriptions\n")
        figures += found
    for name, found in hostile.run(seed) if hostile_too else ():
        sys.stderr.write(f"measured {name}\n")
        figures += found
    if as_json:
        rows = [asdict(figure) | {"target": figure.target} for figure in figures]
        output.print_json({"machine": machine.describe(), "seed": seed, "figures": rows})
        return
    output.print_table(
        "Matching (medians, per notification unless the unit says otherwise)",
        ("subscriptions", "structure", "what", "figure", "unit", "target at most"),
        [
            (
                f"{each.subscriptions:,}",
                each.structure,
                each.what,
                each.value,
                each.unit,
                "" if each.target is None else f"{each.target:,g}",
            )
            for each in figures
        ],
        caption=machine.describe(),
    )


@app.command(name="routing")
def bench_routing(
    subscriptions: Annotated[int, typer.Option(min=1, help="In the broker's table.")] = 10_000,
    seed: SeedOption = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure routing: one inner broker of the paper's overlay, batches of 64, one core."""
    rates = list(routing.run(subscriptions, seed))
    if as_json:
        rows = [asdict(rate) for rate in rates]
        output.print_json({"machine": machine.describe(), "seed": seed, "figures": rows})
        return
    output.print_table(
        f"Routing with {subscriptions:,} subscriptions in the table (medians)",
        ("algorithm", "where", "notifications/s", "IMs per notification"),
        [
            (each.algorithm, each.role, each.notifications_per_s, each.ims_per_notification)
            for each in rates
        ],
        caption=machine.describe(),
    )


@app.command(name="broker")
def bench_broker(
    notifications: Annotated[int, typer.Option(min=1, help="Published in each run.")] = 200_000,
    algorithm: Annotated[Algorithm, typer.Option(help="How brokers route.")] = Algorithm.SNR,
    seed: SeedOption = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure live brokers over loopback: every broker and client is a process of its own."""
    figures = []
    for figure in broker.run(notifications, seed, algorithm.value):
        sys.stderr.write(f"measured {figure.setting}: {figure.value:,.2f} {figure.unit}\n")
        figures.append(figure)
    if as_json:
        rows = [asdict(figure) | {"target": figure.target} for figure in figures]
        facts = {"machine": machine.describe(), "seed": seed, "algorithm": algorithm.value}
        output.print_json({**facts, "figures": rows})
        return
    output.print_table(
        f"Live brokers over loopback, {algorithm.value} (10 attributes, 2% selectivity)",
        ("setting", "figure", "unit", "target"),
        [
            (
                each.setting,
                each.value,
                each.unit,
                "" if each.target is None else f"{each.target:,g}",
            )
            for each in figures
        ],
        caption=machine.describe(),
    )


@app.command(name="attack")
def bench_attack(  # noqa: PLR0913, PLR0917 - each is an option of the command
    attacks: Annotated[
        list[str] | None,
        typer.Option("--attack", help=f"Only this one, or these: {', '.join(ATTACKS)}."),
    ] = None,
    topology: options.TopologyOption = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Over how many processes; as many as cores.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.5, help="How long before, while and after are, each.")
    ] = 10.0,
    rate: Annotated[
        float, typer.Option(min=1, help="What unrelated clients publish in a second, in all.")
    ] = 500.0,
    scale: Annotated[
        float, typer.Option(min=0.001, max=1, help="A share of the full size, to try it out.")
    ] = 1.0,
    code: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="Attack brokers of the source in this folder."
        ),
    ] = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Attack live overlays as one client can, and measure what others notice of it."""
    named = load(topology or "figure-3")
    setting = attack.Setting(named, processes or cores(), seconds, rate, scale, code)
    found = []
    with stops_as_interrupts():
        for each in attack.run(attacks or list(ATTACKS), setting):
            sys.stderr.write(f"{each.attack}: {', '.join(each.faults) or 'holds'}\n")
            found.append(each)
    if as_json:
        rows = [asdict(each) | {"faults": each.faults} for each in found]
        limits = {"memory_mb_max": measures.MEMORY_MB_MAX, "rate": rate, "seconds": seconds}
        output.print_json({"machine": machine.describe(), **limits, "figures": rows})
    else:
        _print_attacked(found, rate)


@app.command(name="kills")
def bench_kills(
    overlay: Annotated[str, typer.Option(help="An overlay of the catalogue.")] = "figure-3",
    algorithm: Annotated[Algorithm, typer.Option(help="How brokers route.")] = Algorithm.TNR,
    pairs: Annotated[
        int | None, typer.Option(min=0, help="So many pairs, spread over all; by default all.")
    ] = None,
    silent: Annotated[
        int, typer.Option(min=0, help="Also so many that stand still instead of ending.")
    ] = 3,
    as_json: output.JsonFlag = False,
) -> None:
    """Kill brokers of a live overlay, and measure what clients of the others notice of it.

    Every broker is a process of its own: each is killed in turn, and each pair, and started anew.
    """
    with stops_as_interrupts():
        found = kills.run(overlay, algorithm.value, silent, pairs, _tell_killed)
    groups = kills.summed(found)
    if as_json:
        rows = [asdict(each) for each in found]
        facts = {"machine": machine.describe(), "overlay": overlay, "algorithm": algorithm.value}
        output.print_json({**facts, "sums": [asdict(each) for each in groups], "figures": rows})
        return
    output.print_table(
        f"What subscribers at living brokers of {overlay} notice under {algorithm.value}",
        (
            "what",
            "times",
            "interruption p50 s",
            "p99 s",
            "max s",
            "lost",
            "of",
            "twice",
            "cut off",
            "equal again s",
        ),
        [
            (
                each.what,
                each.times,
                each.p50_s,
                each.p99_s,
                each.max_s,
                each.lost,
                each.expected,
                each.duplicates,
                each.cut_off,
                each.equal_s_max,
            )
            for each in groups
        ],
        caption=machine.describe(),
    )


@app.command(name="simulator")
def bench_simulator(
    full: Annotated[
        bool, typer.Option("--full", help="Also an overlay of 2,000 brokers: minutes.")
    ] = False,
    seed: SeedOption = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure the simulator: 10,000 subscriptions of 2%, 100 publishers, one run on one core."""
    from octopis.benchmarks import simulator  # noqa: PLC0415 - loads Arrow

    wanted = simulator.cases(seed, large=full)
    measured = []
    for case, figures in zip(wanted, simulator.run(wanted), strict=True):
        sys.stderr.write(f"measured {case.name}\n")
        measured.append((case, figures))
    if as_json:
        rows = [
            asdict(figures)
            | {
                "case": case.name,
                "ims_per_s": figures.ims_per_s,
                "notifications_per_s": figures.notifications_per_s,
            }
            for case, figures in measured
        ]
        output.print_json({"machine": machine.describe(), "seed": seed, "figures": rows})
        return
    output.print_table(
        "Simulator (the trace is written; reading the scenario is not counted)",
        (
            "what",
            "IMs",
            "deliveries",
            "s",
            "at most",
            "IMs/s",
            "notifications/s",
            "memory MB",
            "at most ",
        ),
        [
            (
                case.name,
                figures.ims,
                figures.deliveries,
                figures.run_s,
                case.seconds_target or "",
                figures.ims_per_s,
                figures.notifications_per_s,
                figures.memory_mb,
                case.memory_mb_target or "",
            )
            for case, figures in measured
        ],
        caption=machine.describe(),
    )


@app.command(name="faults")
def bench_faults(
    topology: options.TopologyOption = None,
    share: Annotated[
        float, typer.Option(min=0, max=0.9, help="The share of all brokers that are dead.")
    ] = 0.17,
    draws: Annotated[int, typer.Option(min=1, help="How often they are drawn anew.")] = 100,
    seed: SeedOption = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure what still arrives in the simulator while brokers are dead: a few minutes."""
    from octopis.benchmarks import faults  # noqa: PLC0415 - loads Arrow

    named = load(topology or "paper")
    outcomes = []
    for found in faults.run(named, share, draws, seed):
        outcomes.append(found)
        sys.stderr.write(f"measured draw {len(outcomes)} of {draws}\n")
    rows = []
    for algorithm in faults.ORDER:
        whole = faults.together([each[algorithm] for each in outcomes])
        rows.append(
            {
                "algorithm": algorithm.value,
                "expected": whole.expected,
                "delivered": whole.made,
                "percent": round(100 * whole.share, 3),
                "worst_draw_percent": round(
                    100 * min(each[algorithm].share for each in outcomes), 3
                ),
                "path_mean": round(whole.hops_mean, 3),
                "longer_mean": round(whole.detour_mean, 3),
                "notification_ims": whole.notification_ims,
            }
        )
    if as_json:
        settings = {"topology": named.name, "share": share, "draws": draws, "seed": seed}
        output.print_json(settings | {"figures": rows})
        return
    output.print_table(
        f"{named.name}, {share:.0%} of the brokers dead, {draws} draws; among connected hosts",
        ("", "expected", "delivered", "%", "worst draw %", "mean path", "longer by", "IMs"),
        [tuple(row.values()) for row in rows],
    )


@app.command(name="pipeline")
def bench_pipeline(
    scale: Annotated[
        float, typer.Option(min=0.001, max=1, help="A share of the full size, to try it out.")
    ] = 1.0,
    seed: SeedOption = 1,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure the data pipeline on Spark: ingest, ground truth, metrics, sweep, on 2 cores."""
    from octopis.benchmarks import pipeline  # noqa: PLC0415 - loads Spark
    from octopis.pipeline.spark.settings import parse_conf  # noqa: PLC0415

    figures = []
    with stops_as_interrupts():
        for figure in pipeline.run(scale, seed, parse_conf(conf or [])):
            sys.stderr.write(f"measured {figure.what}\n")
            figures.append(figure)
    if as_json:
        rows = [asdict(figure) for figure in figures]
        output.print_json({"machine": machine.describe(), "seed": seed, "figures": rows})
        return
    output.print_table(
        "Pipeline (the start of Spark is not counted)",
        ("what", "size", "figure", "unit", "target"),
        [(each.what, each.size, each.value, each.unit, each.target) for each in figures],
        caption=machine.describe(),
    )


@app.command(name="calibrate")
def bench_calibrate(
    out: Annotated[
        Path | None, typer.Option(help="Write the profile to this TOML file, too.")
    ] = None,
    force: output.ForceFlag = False,
    seed: SeedOption = 1,
) -> None:
    """Measure what work costs this machine: a profile for `octopis sim example --profile`."""
    if out is not None:
        output.check_new([out], force=force)  # before seconds of measuring
    text = format_profile(calibration.calibrate(seed))
    if out is not None:
        output.write_text(out, text)
    sys.stdout.write(text)


def _tell_killed(each: kills.Aftermath) -> None:
    worst_s = max(each.interruptions_s, default=0.0)
    sys.stderr.write(
        f"{each.what}: {each.blow}: at most {worst_s:.3f} s without news; {each.lost} of "
        f"{each.expected:,} lost; equal tables after {each.equal_s:.2f} s\n"
    )


def _print_attacked(found: list[measures.Attacked], rate: float) -> None:
    output.print_table(
        f"What unrelated clients at {rate:g}/s notice of attacks",
        ("attack", "phase", "rate/s", "p50 ms", "p99 ms", "lost", "pause ms", "MB", "yardstick"),
        [
            (
                each.attack if name == measures.BEFORE else "",
                name,
                phase.rate,
                *("-" if ms is None else ms for ms in (phase.p50_ms, phase.p99_ms)),
                phase.lost,
                phase.pause_ms,
                "-" if phase.memory_mb is None else phase.memory_mb,
                (", ".join(each.faults) or "holds") if name == measures.WHILE else "",
            )
            for each in found
            for name, phase in each.phases.items()
        ],
        caption=machine.describe(),
    )
    for each in found:
        output.say(f"{each.attack}: {each.what} {each.met}.")
        for note in each.notes[:_NOTES_SHOWN]:
            output.say(f"  {note}")


def _counts(sizes: str) -> list[int]:
    try:
        counts = [int(size.replace("_", "")) for size in sizes.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise InvalidConfiguration(f"--sizes takes numbers such as 1000,10000, not {sizes!r}")
    return counts
