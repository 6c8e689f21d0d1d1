"""A process of an overlay: some of its brokers, at the orders of the process that started it.

Its standard input is a pipe that only the starter holds. The word "drain" there begins an orderly
stop; its end is the order to stop, and also comes when the starter is gone, however it ended. On
standard output it says "ready" and, while it drains, "queued N".
"""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import sys
import threading
from pathlib import Path

import msgspec
import uvloop

from octopis.errors import OctopisError
from octopis.live.deployment import all_ready, running, spare_the_collector
from octopis.live.document import parse_overlay
from octopis.live.tracing import TraceOptions
from octopis.trace import Level

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"
_REPORT_S = 0.05
_LATEST_END_S = 8.0
"""Past draining: a process that has not ended by then ends itself."""


class ProcessOrder(msgspec.Struct, frozen=True):
    """What a process of an overlay is to do."""

    configuration: str
    """The path of the overlay's document."""

    doors: dict[str, int]
    """Its brokers, and the descriptors of the sockets at which they listen."""

    trace: str | None = None
    level: Level = Level.DELIVERIES


def main() -> None:
    """Run brokers until told to stop; `argv[1]` is a ProcessOrder as JSON."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    order = msgspec.json.decode(sys.argv[1], type=ProcessOrder)
    # Links and tables of many brokers are many files: as many as the system lets us have.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    spare_the_collector()
    try:
        uvloop.run(_serve(order))
    except OctopisError as failure:
        logging.getLogger(__name__).error("%s", failure)  # noqa: TRY400 - one clear sentence
        sys.exit(failure.exit_status)


async def _serve(order: ProcessOrder) -> None:
    path = Path(order.configuration)
    overlay = parse_overlay(path.read_text(encoding="utf-8"), str(path)).configuration
    doors = {
        overlay.scot.broker(name): socket.socket(fileno=door) for name, door in order.doors.items()
    }
    drain, stop = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    latest_s = overlay.limits.drain_s + _LATEST_END_S
    threading.Thread(target=_hear_orders, args=(loop, drain, stop, latest_s), daemon=True).start()
    trace = None if order.trace is None else TraceOptions(Path(order.trace), order.level)
    async with running(overlay, list(doors), doors, trace) as live:
        ready = loop.create_task(all_ready(live.values()))
        ready.add_done_callback(lambda task: None if task.cancelled() else _say("ready"))
        stopped = loop.create_task(stop.wait())
        drains = loop.create_task(drain.wait())
        await asyncio.wait([stopped, drains], return_when=asyncio.FIRST_COMPLETED)
        for each in live.values():
            each.begin_stop()
        while not stop.is_set():
            _say(f"queued {sum(each.queued for each in live.values())}")
            await asyncio.wait([stopped], timeout=_REPORT_S)
        for task in (ready, drains):
            task.cancel()


def _hear_orders(
    loop: asyncio.AbstractEventLoop, drain: asyncio.Event, stop: asyncio.Event, latest_s: float
) -> None:
    """Pass orders on; a thread of its own hears them even where the event loop is stuck."""
    # The descriptor itself: at exit, nobody may wait for a lock that this thread holds.
    orders = sys.stdin.fileno()
    while word := os.read(orders, 64):
        if b"drain" in word:
            loop.call_soon_threadsafe(drain.set)
    with contextlib.suppress(RuntimeError):  # the loop is closed: the end is near anyway
        loop.call_soon_threadsafe(stop.set)
    threading.Event().wait(latest_s)
    os._exit(1)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # the starter is gone, and the end of orders says so, too
        os.write(sys.stdout.fileno(), f"{line}\n".encode())


if __name__ == "__main__":
    main()
