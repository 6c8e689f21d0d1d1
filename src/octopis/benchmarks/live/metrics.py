"""`octopis bench metrics`: what it costs brokers to show their metrics, in CPU time.

The same load, with metrics off and with metrics on and scraped all the time, in turns; in every
second round the other one is first. CPU time is of the broker processes, with all their threads,
from the first publication until the last delivery: other work on the machine hardly changes it.
"""

import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from threading import Event, Thread

from msgspec import Struct

from octopis.benchmarks.live.roles import overlay_named
from octopis.benchmarks.processes import RoleProcess, free_ports, started_role

SETTINGS = (("line-1", 1_000), ("line-1", 50), ("line-3", 50))
"""Overlays, and how many subscriptions one client has at the last broker."""

COST_MAX = 0.02
"""What we set out for: at most this share of the CPU time."""

OPEN_METRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


class MetricsFigure(Struct, frozen=True):
    """What a notification costs all brokers together, medians of all rounds."""

    brokers: int
    subscriptions: int
    off_us: float
    on_us: float
    ratios: list[float]
    """On to off, of each round."""

    scrapes: int

    @property
    def ratio(self) -> float:
        """The median of the rounds."""
        return median(self.ratios)


def run(notifications: int, rounds: int, every_s: float, seed: int) -> Iterator[MetricsFigure]:
    """Yield a figure for each setting; metrics are scraped every so many seconds."""
    for overlay, subscriptions in SETTINGS:
        load = {"seed": seed, "subscriptions": subscriptions, "notifications": notifications}
        costs: dict[bool, list[float]] = {False: [], True: []}
        scrapes = 0
        for number in range(rounds):
            for is_on in (False, True) if number % 2 == 0 else (True, False):
                cost_s, scraped = _measured(overlay, load, every_s if is_on else None)
                costs[is_on].append(1e6 * cost_s / notifications)
                scrapes += scraped
        ratios = [on / off for off, on in zip(costs[False], costs[True], strict=True)]
        count = len(overlay_named(overlay).brokers)
        off_us, on_us = median(costs[False]), median(costs[True])
        yield MetricsFigure(count, subscriptions, off_us, on_us, ratios, scrapes)


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has taken, also by threads that have ended (Linux)."""
    return time.clock_gettime(~pid << 3 | 2)  # how Linux numbers the clock of another process


def _measured(overlay: str, load: dict[str, int], every_s: float | None) -> tuple[float, int]:
    """Return the CPU time of all brokers under a load, and how often they were scraped."""
    count = len(overlay_named(overlay).brokers)
    ports = free_ports(2 * count)
    places = [f"octopis://127.0.0.1:{port}" for port in ports[:count]]
    shown = [0] * count if every_s is None else ports[count:]
    with ExitStack() as stack:
        brokers = [
            stack.enter_context(_broker(overlay, ports[:count], number, shown[number]))
            for number in range(count)
        ]
        for each in brokers:
            each.hear()
        reader = stack.enter_context(started_role("subscriber", load | {"address": places[-1]}))
        reader.hear()
        writer = stack.enter_context(started_role("publisher", load | {"address": places[0]}))
        writer.hear()
        before = sum(cpu_s(each.pid) for each in brokers)
        scraping = stack.enter_context(_scraped([port for port in shown if port], every_s or 1.0))
        writer.go()
        reader.hear()
        return sum(cpu_s(each.pid) for each in brokers) - before, len(scraping)


@contextmanager
def _broker(overlay: str, ports: list[int], number: int, shown: int) -> Iterator[RoleProcess]:
    options = {"overlay": overlay, "algorithm": "tnr", "ports": ports, "brokers": [number]}
    with started_role("brokers", options | {"metrics_port": shown}) as process:
        yield process


@contextmanager
def _scraped(ports: list[int], every_s: float) -> Iterator[list[float]]:
    """Scrape meanwhile, beginning at once; yield how long each scrape took."""
    took: list[float] = []
    stop = Event()

    def work() -> None:
        while not stop.is_set():
            for port in ports:
                begun = time.monotonic()
                url = f"http://127.0.0.1:{port}/metrics"
                request = urllib.request.Request(url, headers=OPEN_METRICS)
                with urllib.request.urlopen(request) as answer:  # noqa: S310
                    answer.read()
                took.append(time.monotonic() - begun)
            stop.wait(every_s)

    thread = Thread(target=work)
    if ports:
        thread.start()
    try:
        yield took
    finally:
        stop.set()
        if ports:
            thread.join()
