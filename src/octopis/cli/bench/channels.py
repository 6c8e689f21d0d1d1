"""`octopis bench channels`: whether all that was accepted arrives, once and in order."""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from octopis.benchmarks.channels import overload, stalled
from octopis.benchmarks.channels import run as channels
from octopis.benchmarks.channels.faults import FaultsFound, Plan
from octopis.benchmarks.channels.logs import Verdict
from octopis.benchmarks.channels.overload import OverloadFound
from octopis.benchmarks.channels.run import Found, Trial
from octopis.benchmarks.channels.stage import Memory
from octopis.benchmarks.channels.stalled import StalledFound
from octopis.broker.settings import ClientPolicy
from octopis.cli import output
from octopis.errors import OperationFailed
from octopis.report import machine
from octopis.signals import stops_as_interrupts

_NOTES_SHOWN = 5


def bench_channels(  # noqa: PLR0913, PLR0917 - each is an option of the command
    trials: Annotated[
        list[Trial] | None,
        typer.Option("--trial", help="Only this; may be repeated. [default: all three]"),
    ] = None,
    overlay: Annotated[str, typer.Option(help="An overlay of the catalogue.")] = "figure-3",
    seconds: Annotated[
        float, typer.Option(min=1, help="How long faults go on, each being done once at least.")
    ] = 120.0,
    rate: Annotated[
        float, typer.Option(min=1, help="What is published in a second under faults, in all.")
    ] = 2_000.0,
    still_seconds: Annotated[
        float, typer.Option(min=1, help="How long a broker stands still, and then goes on.")
    ] = 30.0,
    overload_seconds: Annotated[float, typer.Option(min=1, help="How long overload lasts.")] = 60.0,
    logs: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Leave the logs of clients and brokers in this folder."),
    ] = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Hurt brokers between publishers and subscribers, and compare what each wrote down.

    Every broker is a process of its own. Exit status 1 says that something was lost, came twice,
    out of order or unasked, or that others were slowed down.
    """
    plan = Plan(overlay=overlay, seconds=seconds, rate=rate, still_s=still_seconds)
    found: list[Found] = []
    with stops_as_interrupts():
        for each in channels.run(trials or list(Trial), plan, overload_seconds, logs, _tell):
            found.append(each)
            _tell(f"{_name(each)}: {'; '.join(each.breaches[:_NOTES_SHOWN]) or 'holds'}")
    if as_json:
        rows = [
            {"trial": _name(each), "breaches": each.breaches, **msgspec.to_builtins(each)}
            for each in found
        ]
        output.print_json({"machine": machine.describe(), "overlay": overlay, "trials": rows})
    else:
        _print(found, overlay)
    broken = [f"{_name(each)}: {each.breaches[0]}" for each in found if each.breaches]
    if broken:
        raise OperationFailed(f"channels do not keep what they promise: {'; '.join(broken)}")


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _name(found: Found) -> str:
    if isinstance(found, FaultsFound):
        return Trial.FAULTS.value
    if isinstance(found, OverloadFound):
        return Trial.OVERLOAD.value
    return f"{Trial.STALLED.value}, {found.policy.value}"


def _print(found: list[Found], overlay: str) -> None:
    output.print_table(
        f"What publishers of {overlay} were promised, and what subscribers got, by their logs",
        ("trial", "accepted", "due", "lost", "twice", "out of order", "unasked", "yardstick"),
        [
            (_name(each), *_law(each.verdict), "; ".join(each.breaches[:1]) or "holds")
            for each in found
        ],
        caption=machine.describe(),
    )
    for each in found:
        output.print_table(_name(each), *_details(each))


def _law(verdict: Verdict) -> tuple[int, ...]:
    return (
        verdict.accepted,
        verdict.expected,
        verdict.lost,
        verdict.twice,
        verdict.out_of_order,
        verdict.unasked,
    )


def _details(found: Found) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns and rows of what a trial has measured beside."""
    if isinstance(found, FaultsFound):
        columns: tuple[str, ...] = ("fault", "times", "without news p50 s", "p99 s", "longest s")
        rows: list[tuple[Any, ...]] = [
            (each.what, each.times, each.p50_s, each.p99_s, each.max_s) for each in found.silences
        ]
        _say_figures(found.figures, found.memory_early, found.memory_late)
        output.say(f"{found.rate:,.0f} notifications/s accepted, for {found.seconds:.0f} s")
        return columns, rows
    columns = ("who", "before/s", "while/s", "share", "at least")
    if isinstance(found, OverloadFound):
        _say_figures(found.figures, found.memory_early, found.memory_late)
        output.say(
            f"{found.offered:,.0f}/s offered, {found.flood_rate:,.0f}/s accepted while it lasted, "
            f"{found.arrived_rate:,.0f}/s arrived"
        )
        before, now, least = found.rates_before, found.rates_while, overload.SHARE_MIN
    else:
        before, now, least = found.came_before, found.came_while, stalled.SHARE_MIN
    return columns, [
        (who, before[who], now[who], found.shares[who], _least(found, who, least)) for who in before
    ]


def _least(found: Found, who: str, least: float) -> object:
    waits = isinstance(found, StalledFound) and found.policy is ClientPolicy.PAUSE
    return "has to wait" if waits and who == stalled.FOR_ALL else least


def _say_figures(figures: dict[str, int], early: Memory, late: Memory) -> None:
    said = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in figures.items())
    output.say(f"channels: {said or 'no figures'}")
    output.say(
        f"memory of brokers: at most {early.largest_mb:.0f}, later {late.largest_mb:.0f} MB in a "
        f"process; {early.all_mb:,.0f}, later {late.all_mb:,.0f} MB in all"
    )
