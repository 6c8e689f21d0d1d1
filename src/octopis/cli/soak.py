"""`octopis sim soak`: many small overlays under faults, to see whether channels hold."""

from typing import Annotated

import msgspec
import typer
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from octopis.cli import output
from octopis.errors import OperationFailed
from octopis.signals import first_interrupt_calls
from octopis.simulator.soak.many import Soaked
from octopis.simulator.soak.many import soak as run_many
from octopis.simulator.soak.run import Outcome, run_seed


def soak(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many runs.")] = 200,
    first: Annotated[int, typer.Option(min=0, help="The seed of the first.")] = 1,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Run this one alone, and tell what happened.")
    ] = None,
    disk: Annotated[
        bool, typer.Option("--disk", help="Give all brokers disks, and let power fail.")
    ] = False,
    as_json: output.JsonFlag = False,
) -> None:
    """Check reliable delivery: real brokers and channels, under faults that a seed draws."""
    if seed is not None:
        _replay(seed, disk=disk, as_json=as_json)
        return
    is_over = False

    def end() -> None:
        nonlocal is_over
        is_over = True

    columns = (
        MofNCompleteColumn(),
        TextColumn("violated: {task.fields[violated]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with first_interrupt_calls(end), output.progress_bar(*columns) as tell:

        def show(soaked: Soaked) -> None:
            tell("seeds", soaked.seeds, seeds, violated=len(soaked.violated))

        soaked = run_many(first, seeds, show, lambda: is_over, disk=disk)
    if as_json:
        output.print_json(msgspec.to_builtins(soaked))
    else:
        _print(soaked)
    if soaked.violated:
        worst = soaked.violated[0].seed
        raise OperationFailed(
            f"laws violated in {len(soaked.violated)} of {soaked.seeds:,} runs: to see what "
            f"happened, octopis sim soak {'--disk ' if disk else ''}--seed {worst}"
        )
    if is_over:
        raise KeyboardInterrupt


def _print(soaked: Soaked) -> None:
    output.print_facts(
        f"{soaked.seeds:,} seeds from {soaked.first:,} on",
        [
            *((f"runs where {kind}", count) for kind, count in soaked.kinds.items()),
            ("notifications accepted", soaked.notifications),
            ("deliveries", soaked.deliveries),
            ("faults", soaked.faults),
            *((name, count) for name, count in soaked.counts.items()),
            ("virtual time", f"{soaked.virtual_s:,.0f} s, in {soaked.seconds:,.1f} s"),
            ("runs that violated a law", len(soaked.violated)),
        ],
    )
    for each in soaked.violated:
        output.say(f"Seed {each.seed} ({each.kind}): {each.violations[0]}")


def _replay(seed: int, *, disk: bool, as_json: bool) -> None:
    outcome = run_seed(seed, disk=disk, tells=True)
    if as_json:
        output.print_json(msgspec.to_builtins(outcome))
    else:
        _print_story(outcome)
    if outcome.violations:
        raise OperationFailed(f"law violated: {outcome.violations[0]}, seed {seed}")


def _print_story(outcome: Outcome) -> None:
    rows = [(f"{now_ns / 1e9:.6f}", text) for now_ns, text in outcome.story]
    output.print_table(f"Seed {outcome.seed}: {outcome.kind}", ("s", "what happened"), rows)
    output.print_facts(
        "In all",
        [
            ("brokers", outcome.brokers),
            ("notifications accepted", outcome.notifications),
            ("deliveries", outcome.deliveries),
            *outcome.counts.items(),
            ("virtual time", f"{outcome.virtual_s:,.3f} s"),
            ("digest", outcome.digest),
            ("violations", len(outcome.violations)),
        ],
    )
    for violation in outcome.violations:
        output.say(violation)
