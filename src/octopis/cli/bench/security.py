"""`octopis bench security` and `fuzz`: what security costs, and what strangers cannot break."""

import base64
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from octopis.cli import output
from octopis.errors import OperationFailed
from octopis.report import machine
from octopis.signals import stops_as_interrupts

_SHOWN = 60


def bench_security(
    notifications: Annotated[int, typer.Option(min=1, help="Published in each run.")] = 200_000,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each kind, in turns.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Logins of each kind for so long.")] = 5.0,
    seed: Annotated[int, typer.Option(help="Seed of the workload.")] = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure what TLS and roles cost a live broker, and how many log in within a second."""
    from octopis.benchmarks.live import security  # noqa: PLC0415 - loads what only this needs

    figures = []
    with stops_as_interrupts():
        for each in security.run(notifications, rounds, seconds, seed):
            sys.stderr.write(
                f"measured {each.setting}, {each.variant}: {each.value:,.2f} {each.unit}\n"
            )
            figures.append(each)
    if as_json:
        rows = [msgspec.to_builtins(each) for each in figures]
        facts = {"machine": machine.describe(), "seed": seed, "rounds": rounds}
        output.print_json({**facts, "figures": rows})
        return
    output.print_table(
        f"Security on one live broker (medians of {rounds} runs in turns; tnr, 10 attributes)",
        ("setting", "how", "figure", "unit", "target"),
        [(each.setting, each.variant, each.value, each.unit, each.target) for each in figures],
        caption=machine.describe(),
    )


def bench_fuzz(  # noqa: PLR0913, PLR0917 - each is an option of the command
    targets: Annotated[
        list[str] | None,
        typer.Option("--target", help="Only this one, or these. [default: all]"),
    ] = None,
    inputs: Annotated[int, typer.Option(min=1, help="For each target.")] = 100_000,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="At most, for each target; what comes first.")
    ] = 60.0,
    corpus: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Begin with what is here, and keep here what is new."),
    ] = None,
    seed: Annotated[int, typer.Option(min=1, help="Seed of the inputs.")] = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Fuzz what reads bytes and texts of strangers, guided by coverage; needs atheris.

    Ends with status 1 where an input breaks a law: an error that is not a documented one, more
    than 10 ms, memory that grows, or something that does not come back as it was.
    """
    from octopis.benchmarks.fuzz import run  # noqa: PLC0415 - loads all that is fuzzed

    found = []
    with stops_as_interrupts():
        for each in run.run(run.chosen(targets), inputs, seconds, seed, corpus):
            sys.stderr.write(f"{each.target}: {each.inputs:,} inputs, {len(each.faults)} faults\n")
            found.append(each)
    if as_json:
        rows = [msgspec.to_builtins(each) for each in found]
        output.print_json({"machine": machine.describe(), "seed": seed, "targets": rows})
    else:
        output.print_table(
            "Fuzzing, guided by coverage",
            (
                "target",
                "inputs",
                "s",
                "corpus",
                "warm MB",
                "end MB",
                "grows MB",
                "slowest ms",
                "faults",
            ),
            [
                (
                    each.target,
                    f"{each.inputs:,}",
                    each.seconds,
                    each.corpus,
                    each.warm_mb,
                    each.end_mb,
                    each.grown_mb,
                    each.slowest_ms,
                    len(each.faults),
                )
                for each in found
            ],
            caption=machine.describe(),
        )
    faults = [fault for each in found for fault in each.faults]
    for fault in faults:
        shown = base64.b64encode(fault.data[:_SHOWN]).decode()
        output.say(f"{fault.target}: {fault.what}; input of {len(fault.data)} bytes: {shown}")
    if faults:
        raise OperationFailed(f"{len(faults)} inputs break a law")
