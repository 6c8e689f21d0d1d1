"""`octopis bench`: measure OctopiS on this machine."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from octopis.benchmarks.core import hostile, matching, routing
from octopis.benchmarks.durable import store
from octopis.benchmarks.simulator import calibration
from octopis.benchmarks.spark.parts import Part
from octopis.cli import options, output
from octopis.cli.bench import (
    channels,
    durable,
    gateway,
    live,
    metrics,
    security,
    streaming_kills,
)
from octopis.cli.topology import load
from octopis.errors import InvalidConfiguration
from octopis.report import machine
from octopis.scenario.costs import format_profile
from octopis.signals import stops_as_interrupts

app = typer.Typer(
    help="Measure OctopiS here: matching, routing, simulator, faults, calibrate, broker, gateway, "
    "metrics, security, store, durable, pipeline; attack, kills, channels, durable-kills, "
    "streaming-kills, fuzz.",
    no_args_is_help=True,
)
SeedOption = live.SeedOption


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


app.command(name="broker")(live.bench_broker)
app.command(name="gateway")(gateway.bench_gateway)
app.command(name="attack")(live.bench_attack)
app.command(name="kills")(live.bench_kills)
app.command(name="metrics")(metrics.bench_metrics)
app.command(name="streaming-kills")(streaming_kills.bench_streaming_kills)
app.command(name="channels")(channels.bench_channels)
app.command(name="durable")(durable.bench_durable)
app.command(name="durable-kills")(durable.bench_durable_kills)
app.command(name="security")(security.bench_security)
app.command(name="fuzz")(security.bench_fuzz)


@app.command(name="store")
def bench_store(
    records: Annotated[
        int, typer.Option(min=1_000, help="How many are recovered and read.")
    ] = 1_000_000,
    folder: Annotated[
        Path | None, typer.Option(help="On the disk to measure; else where temporary files are.")
    ] = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure the store of a broker: records of 300 bytes, on a disk that is really synced."""
    figures = []
    with stops_as_interrupts():
        for figure in store.run(records, folder):
            sys.stderr.write(f"measured {figure.what}\n")
            figures.append(figure)
    if as_json:
        rows = [asdict(figure) for figure in figures]
        output.print_json({"machine": machine.describe(), "figures": rows})
        return
    output.print_table(
        "Store (records of 300 bytes)",
        ("what", "figure", "unit", "target"),
        [(each.what, each.value, each.unit, each.target) for each in figures],
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
    from octopis.benchmarks.simulator import speed  # noqa: PLC0415 - loads Arrow

    wanted = speed.cases(seed, large=full)
    measured = []
    for case, figures in zip(wanted, speed.run(wanted), strict=True):
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
    from octopis.benchmarks.simulator import faults  # noqa: PLC0415 - loads Arrow

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
    only: Annotated[
        list[Part] | None, typer.Option(help="Measure this part alone; may be given again.")
    ] = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure the data pipeline on Spark: ingest, ground truth, metrics, streaming, sweep."""
    from octopis.benchmarks.spark import pipeline  # noqa: PLC0415 - loads Spark
    from octopis.pipeline.spark.settings import parse_conf  # noqa: PLC0415

    figures = []
    with stops_as_interrupts():
        for figure in pipeline.run(scale, seed, parse_conf(conf or []), only or tuple(Part)):
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


def _counts(sizes: str) -> list[int]:
    try:
        counts = [int(size.replace("_", "")) for size in sizes.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise InvalidConfiguration(f"--sizes takes numbers such as 1000,10000, not {sizes!r}")
    return counts
