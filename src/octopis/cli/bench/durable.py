"""`octopis bench durable` and `durable-kills`: what a disk costs, and that it keeps its promise."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from octopis.benchmarks.durable import kills
from octopis.benchmarks.durable import run as durable
from octopis.cli import output
from octopis.errors import OperationFailed
from octopis.logs import without_warnings
from octopis.report import machine
from octopis.signals import stops_as_interrupts

FolderOption = Annotated[
    Path | None,
    typer.Option(file_okay=False, help="On the disk that is tried. [default: the temporary one]"),
]


def bench_durable(  # noqa: PLR0913, PLR0917 - each is an option of the command
    notifications: Annotated[int, typer.Option(min=100, help="Published in each run.")] = 200_000,
    kept: Annotated[
        int, typer.Option(min=100, help="Kept for a subscriber when the broker starts again.")
    ] = 1_000_000,
    size: Annotated[int, typer.Option("--bytes", min=1, help="Of each notification.")] = 300,
    folder: FolderOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the workload.")] = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure a live broker that keeps what it accepts on disk, beside one that does not."""
    figures = []
    with stops_as_interrupts(), tempfile.TemporaryDirectory(dir=folder) as used:
        plan = durable.Plan(
            folder=Path(used), notifications=notifications, kept=kept, bytes=size, seed=seed
        )
        for each in durable.run(plan):
            sys.stderr.write(
                f"measured {each.setting}, {each.level}: {each.value:,.2f} {each.unit}\n"
            )
            figures.append(each)
    if as_json:
        rows = [{**msgspec.to_builtins(each), "target": each.target} for each in figures]
        output.print_json({"machine": machine.describe(), "seed": seed, "figures": rows})
        return
    output.print_table(
        f"A live broker over loopback, notifications of {size} bytes",
        ("setting", "kept", "figure", "unit", "target"),
        [
            (
                each.setting,
                each.level,
                each.value,
                each.unit,
                "" if each.target is None else f"{each.target:,g}",
            )
            for each in figures
        ],
        caption=machine.describe(),
    )


def bench_durable_kills(  # noqa: PLR0913, PLR0917 - each is an option of the command
    overlay: Annotated[str, typer.Option(help="An overlay of the catalogue.")] = "figure-3",
    rounds: Annotated[int, typer.Option(min=1, help="How often each broker is killed.")] = 20,
    accepted: Annotated[
        int, typer.Option(min=1, help="Go on until so much has been accepted.")
    ] = 1_000_000,
    rate: Annotated[
        float, typer.Option(min=1, help="What is published in a second, in all.")
    ] = 3_000.0,
    still_seconds: Annotated[
        float, typer.Option(min=0.1, help="How long a broker stands still, and then goes on.")
    ] = 30.0,
    pause: Annotated[float, typer.Option(min=0, help="Seconds between two blows.")] = 0.7,
    folder: FolderOption = None,
    logs: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Leave logs and disks in this folder, which is new."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of whom it hits next.")] = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Kill brokers with disks, all of them in turn and at once, and compare what clients saw.

    Every broker and every durable subscriber is a process of its own. Exit status 1 says that
    something accepted was lost, came twice or out of order, or that a position has changed.
    """
    plan = kills.Plan(
        overlay=overlay,
        rounds=rounds,
        accepted_min=accepted,
        rate=rate,
        still_s=still_seconds,
        pause_s=pause,
        seed=seed,
    )
    with (
        stops_as_interrupts(),
        without_warnings("octopis.client"),
        tempfile.TemporaryDirectory(dir=folder) as used,
    ):
        if logs is not None:
            logs.mkdir(parents=True)
        found = uvloop.run(kills.run(plan, logs or Path(used), _tell))
    if as_json:
        facts = {"machine": machine.describe(), "overlay": overlay, "breaches": found.breaches}
        output.print_json({**facts, **msgspec.to_builtins(found)})
    else:
        _print_kills(found, overlay)
    if found.breaches:
        raise OperationFailed(f"the promise was not kept: {'; '.join(found.breaches[:5])}")


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _print_kills(found: kills.KillsFound, overlay: str) -> None:
    verdict = found.verdict
    output.print_table(
        f"What publishers of {overlay} were promised, and what durable subscribers took",
        (
            *("accepted", "due", "lost", "twice", "out of order", "unasked"),
            *("positions changed", "positions skipped", "taken again"),
        ),
        [
            (
                *(verdict.accepted, verdict.expected, verdict.lost, verdict.twice),
                *(verdict.out_of_order, verdict.unasked, verdict.changed, verdict.skipped),
                verdict.again,
            )
        ],
        caption=machine.describe(),
    )
    blows = ", ".join(f"{count:,} times {what}" for what, count in found.blows.items())
    output.say(
        f"{blows}; {found.rate:,.0f} notifications/s accepted, for {found.seconds:.0f} s; a broker "
        f"was back within {found.back_s_max:.1f} s"
    )
