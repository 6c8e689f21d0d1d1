"""`octopis bench`, what is measured on live overlays: their speed, attacks on them, and deaths."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from octopis.benchmarks.attack import measures
from octopis.benchmarks.attack import run as attack
from octopis.benchmarks.attack.attackers import ATTACKS
from octopis.benchmarks.kills import run as kills
from octopis.benchmarks.live import broker
from octopis.cli import options, output
from octopis.cli.topology import load
from octopis.core.delivery.options import Level
from octopis.core.routing import Algorithm
from octopis.overlay.supervisor import cores
from octopis.report import machine
from octopis.signals import stops_as_interrupts

_NOTES_SHOWN = 3
SeedOption = Annotated[int, typer.Option(help="Seed of the workload.")]


def bench_broker(
    notifications: Annotated[int, typer.Option(min=1, help="Published in each run.")] = 200_000,
    algorithms: Annotated[
        list[Algorithm] | None,
        typer.Option("--algorithm", help="Route so; may be repeated. [default: snr and tnr]"),
    ] = None,
    level: Annotated[
        Level | None,
        typer.Option(help="TNR with or without channels between hosts. [default: both]"),
    ] = None,
    seed: SeedOption = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure live brokers over loopback: every broker and client is a process of its own."""
    figures = []
    levels = [Level.NONE, Level.MEMORY] if level is None else [level]
    variants = [
        broker.Variant(algorithm.value, each.value)
        for algorithm in algorithms or (Algorithm.SNR, Algorithm.TNR)
        for each in (levels if algorithm is Algorithm.TNR else [Level.NONE])
    ]
    for figure in broker.run(notifications, seed, variants):
        sys.stderr.write(
            f"measured {figure.setting}, {figure.variant}: {figure.value:,.2f} {figure.unit}\n"
        )
        figures.append(figure)
    if as_json:
        rows = [asdict(figure) | {"target": figure.target} for figure in figures]
        facts = {"machine": machine.describe(), "seed": seed}
        output.print_json({**facts, "figures": rows})
        return
    output.print_table(
        "Live brokers over loopback (10 attributes, 2% selectivity)",
        ("setting", "routing", "figure", "unit", "target"),
        [
            (
                each.setting,
                each.variant,
                each.value,
                each.unit,
                "" if each.target is None else f"{each.target:,g}",
            )
            for each in figures
        ],
        caption=machine.describe(),
    )


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
