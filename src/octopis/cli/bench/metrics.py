"""`octopis bench metrics`: what it costs brokers to show their metrics."""

import sys
from typing import Annotated

import msgspec
import typer

from octopis.benchmarks.live import metrics
from octopis.cli import output
from octopis.report import machine


def bench_metrics(
    notifications: Annotated[int, typer.Option(min=1, help="Published in each run.")] = 200_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each is run.")] = 5,
    every_s: Annotated[float, typer.Option(min=0.01, help="How often brokers are scraped.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the workload.")] = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure the CPU time that metrics cost brokers: off, and on and scraped, in turns."""
    figures = []
    for each in metrics.run(notifications, rounds, every_s, seed):
        sys.stderr.write(
            f"measured {each.brokers} brokers, {each.subscriptions} subscriptions: "
            f"{each.ratio:.3f}\n"
        )
        figures.append(each)
    facts = {"machine": machine.describe(), "seed": seed, "every_s": every_s}
    if as_json:
        rows = [msgspec.to_builtins(each) | {"ratio": each.ratio} for each in figures]
        output.print_json(facts | {"target": 1 + metrics.COST_MAX, "figures": rows})
        return
    output.print_table(
        f"Broker CPU time for a notification, scraped every {every_s:g} s",
        ("brokers", "subscriptions", "off, us", "on, us", "on / off", "rounds", "target at most"),
        [
            (
                each.brokers,
                each.subscriptions,
                each.off_us,
                each.on_us,
                f"{each.ratio:.3f}",
                " ".join(f"{ratio:.3f}" for ratio in each.ratios),
                f"{1 + metrics.COST_MAX:.2f}",
            )
            for each in figures
        ],
        caption=machine.describe(),
    )
