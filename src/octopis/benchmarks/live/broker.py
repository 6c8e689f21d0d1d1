"""`octopis bench broker`: real brokers, publishers and subscribers over loopback.

Every broker, publisher and subscriber is a process of its own; the subscriber decodes everything.
Rates are end to end: from the first publication until the last delivery.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from octopis.benchmarks.live.roles import overlay_named
from octopis.benchmarks.processes import RoleProcess, free_ports, started_role

TARGETS = {
    ("1 broker, 1,000 subscriptions", "notifications/s"): 25_000,
    ("1 broker, 1,000 subscriptions", "deliveries/s"): 500_000,
    ("1 broker, 50 subscriptions", "notifications/s"): 60_000,
    ("3 brokers in a row, 50 subscriptions", "notifications/s"): 12_000,
    ("1 broker", "ms, median round trip"): 1,
    ("figure-3's longest path", "ms, median round trip"): 5,
}
"""What we set out to reach on a 2-core machine: rates at least, times at most."""


@dataclass(frozen=True, slots=True)
class BrokerFigure:
    """One measured figure."""

    setting: str
    value: float
    unit: str
    variant: str

    @property
    def target(self) -> float | None:
        """What it should be: a rate at least, a time at most."""
        return TARGETS.get((self.setting, self.unit))


class Variant(NamedTuple):
    """How brokers route, and at which level they deliver."""

    algorithm: str
    level: str = "memory"

    def __str__(self) -> str:
        if self.algorithm != "tnr":
            return self.algorithm
        return "tnr" if self.level != "none" else "tnr without channels"


def run(notifications: int, seed: int, variants: list[Variant]) -> Iterator[BrokerFigure]:
    """Yield the figures, one setting after the other, and in each all variants side by side."""
    for overlay, subscriptions in (("line-1", 1_000), ("line-1", 50), ("line-3", 50)):
        brokers = "1 broker" if overlay == "line-1" else "3 brokers in a row"
        setting = f"{brokers}, {subscriptions:,} subscriptions"
        for variant in variants:
            yield from _throughput(variant, setting, overlay, subscriptions, notifications, seed)
    rounds = min(1_000, notifications)
    for variant in variants:
        nearest = _round_trip(variant, "line-1", 0, 0, 1, rounds)
        yield BrokerFigure("1 broker", nearest, "ms, median round trip", str(variant))
    for variant in variants:
        longest = _round_trip(variant, "figure-3", 0, 17, 2, rounds)
        yield BrokerFigure(
            "figure-3's longest path", longest, "ms, median round trip", str(variant)
        )


def _throughput(  # noqa: PLR0913, PLR0917 - one call for each setting
    variant: Variant, setting: str, overlay: str, subscriptions: int, notifications: int, seed: int
) -> Iterator[BrokerFigure]:
    count = len(overlay_named(overlay).brokers)
    with ExitStack() as stack:
        addresses = stack.enter_context(_overlay(variant, overlay, processes=count))
        workload = {"seed": seed, "subscriptions": subscriptions, "notifications": notifications}
        reader = stack.enter_context(_role("subscriber", workload | {"address": addresses[-1]}))
        writer = stack.enter_context(_role("publisher", workload | {"address": addresses[0]}))
        writer.go()
        written, read = writer.hear(), reader.hear()
    seconds = read["finished"] - written["started"]
    yield BrokerFigure(setting, (notifications + 1) / seconds, "notifications/s", str(variant))
    yield BrokerFigure(setting, read["deliveries"] / seconds, "deliveries/s", str(variant))


def _round_trip(  # noqa: PLR0913, PLR0917 - one call for each setting
    variant: Variant, overlay: str, source: int, target: int, processes: int, rounds: int
) -> float:
    with _overlay(variant, overlay, processes) as addresses:
        places = {"publish_at": addresses[source], "subscribe_at": addresses[target]}
        with _role("pinger", places | {"rounds": rounds}) as pinger:
            return float(pinger.first["median_ms"])


@contextmanager
def _overlay(variant: Variant, overlay: str, processes: int) -> Iterator[list[str]]:
    """Run an overlay, its brokers dealt out to processes; yield where to connect."""
    count = len(overlay_named(overlay).brokers)
    ports = free_ports(count)
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                started_role(
                    "brokers",
                    {
                        "overlay": overlay,
                        "algorithm": variant.algorithm,
                        "level": variant.level,
                        "ports": ports,
                        "brokers": list(range(number, count, processes)),
                    },
                )
            )
            for number in range(processes)
        ]
        for process in started:
            process.hear()
        yield [f"octopis://127.0.0.1:{port}" for port in ports]


@contextmanager
def _role(role: str, options: dict[str, Any]) -> Iterator[RoleProcess]:
    """Run a process, and wait until it is ready."""
    with started_role(role, options) as process:
        process.first = process.hear()
        yield process
