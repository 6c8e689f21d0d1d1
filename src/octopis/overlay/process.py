"""A process of an overlay: some of its brokers, at the orders of the process that started it.

Its standard input is a pipe that only the starter holds. The word "drain" there begins an orderly
stop; its end is the order to stop, and also comes when the starter is gone, however it ended. On
standard output it says "ready"; while it drains, "queued N"; and where it cannot run, and could not
the next time either, "refused" and why. `Child` is the starter's side of that, `main` the other.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import uvloop

from octopis.broker.tracing import TraceOptions
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.errors import OctopisError, StoreFull
from octopis.logs import log_to_stderr
from octopis.overlay.deployment import (
    all_ready,
    any_broken,
    raise_file_limit,
    running,
    spare_the_collector,
)
from octopis.overlay.metrics import shown_at
from octopis.overlay.orders import hear_orders, say
from octopis.overlay.settings import parse_overlay
from octopis.trace import Level

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"
_REPORT_S = 0.05
_LATEST_END_S = 8.0
"""Past draining: a process that has not ended by then ends itself."""

_LOG_LINES = 8
"""How much is shown of the log of a process that has ended by itself."""


class ProcessOrder(msgspec.Struct, frozen=True):
    """What a process of an overlay is to do."""

    configuration: str
    """The path of the overlay's document."""

    listeners: dict[str, int]
    """Its brokers, and the descriptors of the sockets at which they listen."""

    trace: str | None = None
    level: Level = Level.DELIVERIES
    link_listeners: dict[str, int] = {}
    """Under security, the sockets at which they listen for neighbours."""
    metrics_port: int = 0


class Child:
    """One process with some of the brokers. `start`, then `end` whatever happens."""

    def __init__(self, number: int, brokers: list[BrokerId], log: Path) -> None:
        self.brokers = brokers
        self.log = log
        self.ready = asyncio.Event()
        self.empty_reports = 0
        """How often in a row it has reported that its queues are empty, while draining."""

        self.queued = 0
        """How many messages wait in its queues, while draining."""

        self.refusal = ""
        """Why it cannot run, as it says itself; empty where it has said nothing."""

        self.number = number
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None

    async def start(self, order: ProcessOrder, sockets: Iterable[socket.socket]) -> None:
        """Start the process; it inherits the sockets at which its brokers listen."""
        with self.log.open("ab") as log:
            # A session of its own: Ctrl-C is for the starter alone, which then stops in order.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "octopis.overlay.process",
                msgspec.json.encode(order).decode(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                pass_fds=[each.fileno() for each in sockets],
                start_new_session=True,
            )
        self._listener = asyncio.create_task(self._listen())

    async def ended(self) -> int:
        """Wait until the process has ended and all is heard that it said; return its status."""
        assert self._process is not None
        assert self._listener is not None
        status = await self._process.wait()
        await asyncio.wait([self._listener])
        return status

    @property
    def has_ended(self) -> bool:
        """Whether the process runs no longer."""
        return self._process is not None and self._process.returncode is not None

    def drain(self) -> None:
        """Order it to take nothing new, and to report when its queues are empty."""
        assert self._process is not None
        assert self._process.stdin is not None
        if self._process.stdin.is_closing():  # it has ended: `ended` says so
            return
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(b"drain\n")

    async def end(self, limit_s: float) -> None:
        """Order it to stop; kill it where it has not ended in time."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(limit_s):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        if self._listener is not None:
            await self._listener

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def ending(self, status: int) -> str:
        """Say that the process has ended, and why."""
        how = f"with status {status}"
        if status < 0:
            how = f"by signal {-status} ({signal.Signals(-status).name})"
        few = ", ".join(broker.short for broker in self.brokers[:4])
        more = f" and {len(self.brokers) - 4} more" if len(self.brokers) > 4 else ""
        return f"process {self.number} with the brokers {few}{more} ended {how}"

    def fault(self, status: int) -> str:
        """Say that the process has ended for good, why, and what it said last."""
        if self.refusal:
            return f"{self.refusal}, so this overlay does not run"
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        tail = "".join(f"\n  {line}" for line in lines[-_LOG_LINES:])
        return (
            f"{self.ending(status)}, so the whole overlay was stopped; its log {self.log} "
            f"ends:{tail or ' (it is empty)'}"
        )

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, _, rest = line.decode().strip().partition(" ")
            if word == "ready":
                self.ready.set()
            elif word == "refused":
                self.refusal = rest
            elif word == "queued":
                self.queued = int(rest)
                self.empty_reports = 0 if self.queued else self.empty_reports + 1


def main() -> None:
    """Run brokers until told to stop; `argv[1]` is a ProcessOrder as JSON."""
    log_to_stderr(LOG_FORMAT, logging.INFO)
    order = msgspec.json.decode(sys.argv[1], type=ProcessOrder)
    raise_file_limit()
    # The first filter loads the language, which takes long: not when links are up already, and
    # what goes through a broker that has come back would have to wait for that.
    parse_filter("TRUE")
    spare_the_collector()
    try:
        uvloop.run(_serve(order))
    except OctopisError as failure:
        logging.getLogger(__name__).error("%s", failure)  # noqa: TRY400 - one clear sentence
        if not isinstance(failure, StoreFull):  # there may be room the next time
            say(f"refused {' '.join(str(failure).split())}")
        sys.exit(failure.exit_status)


async def _serve(order: ProcessOrder) -> None:
    path = Path(order.configuration)
    overlay = parse_overlay(path.read_text(encoding="utf-8"), str(path)).configuration
    overlay = shown_at(overlay, order.metrics_port)
    listeners, link_listeners = (
        {overlay.scot.broker(name): socket.socket(fileno=number) for name, number in each.items()}
        for each in (order.listeners, order.link_listeners)
    )
    drain, stop = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    hear_orders(stop, overlay.limits.drain_s + _LATEST_END_S, {b"drain": drain})
    trace = None if order.trace is None else TraceOptions(Path(order.trace), order.level)
    async with running(overlay, list(listeners), listeners, trace, link_listeners) as live:
        ready = loop.create_task(all_ready(live.values()))
        ready.add_done_callback(lambda task: None if task.cancelled() else say("ready"))
        stopped = loop.create_task(stop.wait())
        drains = loop.create_task(drain.wait())
        broken = loop.create_task(any_broken(live.values()))
        ends = [stopped, drains, broken]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for each in live.values():
            each.begin_stop()
        while not stop.is_set() and not broken.done():
            say(f"queued {sum(each.queued for each in live.values())}")
            await asyncio.wait([stopped, broken], timeout=_REPORT_S)
        for task in (ready, drains):
            task.cancel()
        if broken.done() and not stop.is_set():
            raise RuntimeError("a broker does not work any more") from broken.result()
        broken.cancel()


if __name__ == "__main__":
    main()
