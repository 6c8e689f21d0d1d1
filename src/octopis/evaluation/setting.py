"""What an evaluation was run with, as a reader wants to know it."""

import platform
from pathlib import Path

import pyspark

from octopis.evaluation.experiments import PUBLISHERS, RATES, SIZES
from octopis.evaluation.folders import Request
from octopis.report.machine import describe


def setting(request: Request) -> list[tuple[str, str]]:
    """Return sizes, seeds, quotes, versions and the machine."""
    sizes = SIZES[request.size]
    rates = ", ".join(f"{rate // 1000}K" for rate in RATES)
    return [
        ("size, seeds", f"{request.size.value}, {_seeds(request.seeds)}"),
        ("overlay", "the paper's S_e: 15 regions, 5 clusters, 75 brokers"),
        (
            "subscriber scalability",
            f"{_listed(sizes.subscribers)} subscribers; {PUBLISHERS} publishers of "
            f"{sizes.subscribers_notifications:,} notifications, 60 a minute",
        ),
        (
            "publisher scalability",
            f"{_listed(sizes.publishers)} publishers of {sizes.publishers_notifications:,}, 100 a "
            f"minute; {sizes.publishers_subscribers:,} subscribers",
        ),
        (
            "burst",
            f"{sizes.burst_subscribers:,} subscribers; {PUBLISHERS} publishers of "
            f"{sizes.burst_notifications:,}, 60 a minute; a high-rate publisher of "
            f"{sizes.burst_high_rate:,} at {rates} a minute; tau 10, t_w 50 ms",
        ),
        ("several high-rate publishers", f"1, {_listed(sizes.several)}, at {RATES[0] // 1000}K"),
        ("quotes", ", ".join(Path(path).name for path in request.quotes) or "synthetic, seed 1"),
        (
            "versions",
            f"OctopiS {request.version}, Spark {pyspark.__version__}, "
            f"Python {platform.python_version()}",
        ),
        ("machine of this report", describe()),
    ]


def _seeds(count: int) -> str:
    return "seed 1" if count == 1 else f"seeds 1 to {count}"


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)
