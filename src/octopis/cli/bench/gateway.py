"""`octopis bench gateway`: what a gateway carries."""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from octopis.benchmarks.gateway import run
from octopis.cli import output
from octopis.cli.options import needs_gateway
from octopis.report import machine
from octopis.signals import stops_as_interrupts


def bench_gateway(
    seconds: Annotated[float, typer.Option(min=0.2, help="How long each run takes.")] = 5.0,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure a gateway: POSTs, streams of lines, CloudEvents, server-sent events, WebSockets."""
    needs_gateway()
    figures = []
    with stops_as_interrupts():
        for figure in run.run(seconds):
            sys.stderr.write(f"measured {figure.what}: {figure.per_s:,.0f}/s\n")
            figures.append(figure)
    if as_json:
        rows = [asdict(figure) for figure in figures]
        output.print_json({"machine": machine.describe(), "figures": rows})
        return
    output.print_table(
        "Gateway (5 attributes; CPU time for each notification, in µs)",
        ("what", "per second", "target", "gateway µs", "broker µs", "load µs"),
        [
            (
                each.what,
                each.per_s,
                "" if each.target is None else f"{each.target:,}",
                f"{each.gateway_us:.1f}",
                f"{each.broker_us:.1f}",
                f"{each.load_us:.1f}",
            )
            for each in figures
        ],
        caption=machine.describe(),
    )
