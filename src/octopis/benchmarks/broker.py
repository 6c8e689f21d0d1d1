"""`octopis bench broker`: real brokers, publishers and subscribers over loopback.

Every broker, publisher and subscriber is a process of its own; the subscriber decodes everything.
Rates are end to end: from the first publication until the last delivery.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from octopis.benchmarks.broker_roles import overlay_named
from octopis.benchmarks.processes import RoleProcess, started_role

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

    @property
    def target(self) -> float | None:
        """What it should be: a rate at least, a time at most."""
        return TARGETS.get((self.setting, self.unit))


def run(notifications: int, seed: int, algorithm: str = "snr") -> Iterator[BrokerFigure]:
    """Yield the figures, one setting after the other."""
    throughput = partial(_throughput, algorithm)
    for subscriptions in (1_000, 50):
        setting = f"1 broker, {subscriptions:,} subscriptions"
        yield from throughput(setting, "line-1", subscriptions, notifications, seed)
    setting = "3 brokers in a row, 50 subscriptions"
    yield from throughput(setting, "line-3", 50, notifications, seed)
    rounds = min(1_000, notifications)
    nearest = _round_trip(algorithm, "line-1", 0, 0, 1, rounds)
    yield BrokerFigure("1 broker", nearest, "ms, median round trip")
    longest = _round_trip(algorithm, "figure-3", 0, 17, 2, rounds)
    yield BrokerFigure("figure-3's longest path", longest, "ms, median round trip")


def _throughput(  # noqa: PLR0913, PLR0917 - one call for each setting
    algorithm: str, setting: str, overlay: str, subscriptions: int, notifications: int, seed: int
) -> Iterator[BrokerFigure]:
    count = len(overlay_named(overlay).brokers)
    with ExitStack() as stack:
        addresses = stack.enter_context(_overlay(algorithm, overlay, processes=count))
        workload = {"seed": seed, "subscriptions": subscriptions, "notifications": notifications}
        reader = stack.enter_context(_role("subscriber", workload | {"address": addresses[-1]}))
        writer = stack.enter_context(_role("publisher", workload | {"address": addresses[0]}))
        writer.go()
        written, read = writer.hear(), reader.hear()
    seconds = read["finished"] - written["started"]
    yield BrokerFigure(setting, (notifications + 1) / seconds, "notifications/s")
    yield BrokerFigure(setting, read["deliveries"] / seconds, "deliveries/s")


def _round_trip(  # noqa: PLR0913, PLR0917 - one call for each setting
    algorithm: str, overlay: str, source: int, target: int, processes: int, rounds: int
) -> float:
    with _overlay(algorithm, overlay, processes) as addresses:
        places = {"publish_at": addresses[source], "subscribe_at": addresses[target]}
        with _role("pinger", places | {"rounds": rounds}) as pinger:
            return float(pinger.first["median_ms"])


@contextmanager
def _overlay(algorithm: str, overlay: str, processes: int) -> Iterator[list[str]]:
    """Run an overlay, its brokers dealt out to processes; yield where to connect."""
    count = len(overlay_named(overlay).brokers)
    ports = _free_ports(count)
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                started_role(
                    "brokers",
                    {
                        "overlay": overlay,
                        "algorithm": algorithm,
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


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
