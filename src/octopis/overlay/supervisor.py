"""Runs a whole overlay on this machine: starts its processes, watches them, stops them in order.

Each process has as many brokers as the others, and neighbours are apart where that can be: they
work on the same notifications one after the other, and in different processes they do so at the
same time, on different cores.

A process that ends by itself is started anew, at the same addresses: its brokers join again.

No process outlives the supervisor: each holds one end of a pipe and stops when the other is closed,
which the system does for a supervisor that was killed.
"""

import asyncio
import logging
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.topology import SCOT
from octopis.errors import OperationFailed
from octopis.overlay.deaths import Deaths
from octopis.overlay.deployment import planned, planned_links
from octopis.overlay.gateway import GatewayProcess
from octopis.overlay.listeners import Listeners, Places
from octopis.overlay.metrics import metrics_places
from octopis.overlay.process import Child, ProcessOrder
from octopis.overlay.registry import CONFIGURATION_FILE, OverlayState, StateFolder
from octopis.overlay.settings import NamedOverlay, format_overlay, parse_overlay
from octopis.security.folder import SecurityFolder
from octopis.trace import Level

START_S = 120.0
_END_S = 5.0
_LOOK_S = 0.02
_log = logging.getLogger(__name__)
_OTHER_FILES = 48
"""What a process has open beside listeners and links, with room for the first clients."""


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_brokers(scot: SCOT, processes: int) -> list[list[BrokerId]]:
    """Return the brokers of each process; there are never more processes than brokers."""
    assert processes >= 1, "brokers need at least one process"
    count = min(processes, len(scot.brokers))
    room = -(-len(scot.brokers) // count)
    shares: list[list[BrokerId]] = [[] for _ in range(count)]
    process_of: dict[BrokerId, int] = {}
    for broker in scot.brokers:
        near = [process_of[other] for other in scot.neighbours(broker) if other in process_of]
        chosen = min(
            (number for number in range(count) if len(shares[number]) < room),
            key=lambda number: (near.count(number), len(shares[number]), number),
        )
        shares[chosen].append(broker)
        process_of[broker] = chosen
    return [share for share in shares if share]


def check_descriptors(
    scot: SCOT, shares: list[list[BrokerId]], tables: int, listeners: int = 1
) -> None:
    """Raise OperationFailed where a process would need more files than the system lets it open.

    `tables` is how many files of a trace each broker writes, `listeners` at how many sockets it
    listens. Otherwise let this process open as
    many as it may: it opens the sockets of all brokers.
    """
    ends = [sum(listeners + len(scot.neighbours(b)) + tables for b in share) for share in shares]
    needed = max(listeners * len(scot.brokers), *ends) + _OTHER_FILES
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and needed > most:
        raise OperationFailed(
            f"a process of this overlay needs {needed:,} open files, but may have {most:,} at most "
            "(ulimit -Hn): raise that limit, or give the overlay more --processes; nothing was "
            "started"
        )
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))


class OverlayOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An overlay that is to run on this machine."""

    configuration: str
    """Its document."""

    state: str
    """The folder of all overlays' states."""

    processes: int
    first_port: int | None = None
    trace: str | None = None
    level: Level = Level.DELIVERIES
    credentials: str = ""
    """The file of credentials that commands of this user are to take."""

    gateway_port: int | None = None
    """Where its gateway listens, if it has one; 0 for any that is free."""


class Supervisor:
    """Runs one overlay until it is told to stop; told twice, it stops at once.

    A gateway listens at `door`, if that is given, in place of a port: it stays the caller's.
    """

    def __init__(self, order: OverlayOrder, door: socket.socket | None = None) -> None:
        self.undrained = 0
        """How many messages were still queued when draining took too long."""

        self._order = order
        self._stop = asyncio.Event()
        self._at_once = asyncio.Event()
        self._children: list[Child] = []
        place = order.gateway_port if door is None else door
        self._gateway = None if place is None else GatewayProcess(place)
        self._metrics: list[Address] = []

    def stop(self) -> None:
        """Begin an orderly stop; where one is under way, end it."""
        if self._stop.is_set():
            self._at_once.set()
        self._stop.set()

    def kill(self, broker: BrokerId) -> None:
        """End the process of a broker at once and without a word, as a fault would."""
        next(child for child in self._children if broker in child.brokers).kill()

    def stop_at_signals(self) -> None:
        """Stop when the process is told so from outside."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.stop)

    async def run(self, on_ready: Callable[[OverlayState], None]) -> None:
        """Run the overlay; `on_ready` is told when every broker takes requests.

        A process that ends by itself is started anew. Raises OperationFailed where a port is
        taken or too few files may be open (then nothing was started), and where a process ends
        during the start, again and again, because it cannot run (a store that cannot be opened),
        or while a trace is written, which would have a hole (then the others were stopped).
        """
        overlay = parse_overlay(self._order.configuration, "the overlay's document")
        limits, scot = overlay.configuration.limits, overlay.configuration.scot
        shares = share_brokers(scot, self._order.processes)
        self._metrics = metrics_places(overlay.configuration, len(shares))
        tables = 0 if self._order.trace is None else len(self._order.level.tables)
        check_descriptors(scot, shares, tables, 1 + overlay.configuration.is_secure)
        if overlay.configuration.is_secure:  # found here, and not by each process
            SecurityFolder(Path(overlay.configuration.security.folder)).check(scot.brokers)
        places = planned(overlay.configuration, self._order.first_port)
        listeners = Listeners.open(places, planned_links(overlay.configuration, places))
        with ExitStack() as stack:
            stack.callback(listeners.close, scot.brokers)
            if self._gateway is not None:
                self._gateway.open()
            addresses = listeners.addresses
            link_ports = {broker: place.port for broker, place in addresses.links.items()}
            configuration = overlay.configuration.at(addresses.clients, link_ports)
            placed = NamedOverlay(overlay.topology, configuration)
            first_port = next(iter(addresses.clients.values())).port
            name = f"{overlay.topology.name}-{first_port}"
            folder = stack.enter_context(StateFolder(Path(self._order.state), name))
            state = self._state(folder, placed, shares)
            folder.write(state)
            document = folder.path / CONFIGURATION_FILE
            document.write_text(format_overlay(placed), encoding="utf-8")
            try:
                await self._start(shares, listeners, document)
                if await self._started():
                    state = await self._with_gateway(state, document)
                    folder.write(state)
                    on_ready(state)
                    await self._keep_running(addresses, document)
                    await self._end_gateway()
                    await self._drain(limits.drain_s)
            finally:
                await self._end_gateway()
                await self._end()

    async def _start(
        self, shares: list[list[BrokerId]], listeners: Listeners, document: Path
    ) -> None:
        """Start a process for each share of the brokers, and leave their sockets to it alone."""
        for number, share in enumerate(shares):
            child = Child(number, share, document.with_name(f"process-{number}.log"))
            self._children.append(child)
            await self._start_child(child, listeners, document)

    async def _with_gateway(self, state: OverlayState, document: Path) -> OverlayState:
        """Start the gateway, if there is to be one, and return the state of what is ready."""
        if self._gateway is None:
            return msgspec.structs.replace(state, ready=True)
        await self._gateway.start(state.name, document, self._order.credentials)
        return msgspec.structs.replace(state, ready=True, gateway=self._gateway.url)

    async def _end_gateway(self) -> None:
        """Stop the gateway, before brokers: it is a client of theirs."""
        if self._gateway is not None:
            gateway, self._gateway = self._gateway, None
            await gateway.end(0.1 if self._at_once.is_set() else _END_S)

    async def _start_child(self, child: Child, listeners: Listeners, document: Path) -> None:
        clients, links = (
            {broker.short: each[broker].fileno() for broker in child.brokers if broker in each}
            for each in listeners
        )
        trace, level = self._order.trace, self._order.level
        metrics_port = self._metrics[child.number].port if self._metrics else 0
        order = ProcessOrder(str(document), clients, trace, level, links, metrics_port)
        await child.start(order, listeners.of(child.brokers))
        listeners.close(child.brokers)

    async def _keep_running(self, addresses: Places, document: Path) -> None:
        """Wait until the overlay is to stop; start anew what ends by itself before."""
        if self._order.trace is not None:
            await self._watched(self._stop.wait())
            return
        stop = asyncio.create_task(self._stop.wait())
        deaths = [Deaths() for _ in self._children]
        while not stop.done():
            ends = {asyncio.create_task(child.ended()): child for child in self._children}
            try:
                await asyncio.wait({stop, *ends}, return_when=asyncio.FIRST_COMPLETED)
                died = [(child, end.result()) for end, child in ends.items() if end.done()]
            finally:
                for task in ends:
                    task.cancel()
            for child, status in died if not stop.done() else ():
                delay_s = deaths[child.number].next_start_s(time.monotonic())
                if delay_s is None or child.refusal:
                    raise OperationFailed(child.fault(status))
                _log.warning("%s; it starts anew in %g s", child.ending(status), delay_s)
                await asyncio.wait([stop], timeout=delay_s)
                if not stop.done():
                    await self._start_anew(child, addresses, document)

    async def _start_anew(self, dead: Child, addresses: Places, document: Path) -> None:
        """Start a process in the place of one that has died, at the same addresses."""
        await dead.end(_END_S)
        child = Child(dead.number, dead.brokers, dead.log)
        self._children[dead.number] = child
        listeners = Listeners.open(*addresses.of(dead.brokers))
        await self._start_child(child, listeners, document)

    async def _started(self) -> bool:
        """Wait until every broker is ready; False where the overlay is to stop before that."""
        try:
            async with asyncio.timeout(START_S):
                await self._watched(self._ready_or_stopped())
        except TimeoutError as failure:
            raise OperationFailed(
                f"the overlay was not ready within {START_S:g} s; its logs are in "
                f"{self._children[0].log.parent}"
            ) from failure
        return not self._stop.is_set()

    async def _ready_or_stopped(self) -> None:
        while not self._stop.is_set() and not all(child.ready.is_set() for child in self._children):
            await asyncio.sleep(_LOOK_S)

    async def _watched(self, work: Coroutine[Any, Any, object]) -> None:
        """Wait for `work`, or raise OperationFailed when a process ends before."""
        wanted = asyncio.create_task(work)
        ends = {asyncio.create_task(child.ended()): child for child in self._children}
        try:
            await asyncio.wait({wanted, *ends}, return_when=asyncio.FIRST_COMPLETED)
            for end, child in ends.items():
                if end.done():
                    raise OperationFailed(child.fault(end.result()))
        finally:
            wanted.cancel()
            for task in ends:
                task.cancel()

    async def _drain(self, limit_s: float) -> None:
        """Let all queues of all processes empty: what one holds may go through another.

        One that has died, and was not started anew yet, holds nothing any more.
        """
        for child in self._children:
            child.drain()
        deadline = time.monotonic() + limit_s
        while any(child.empty_reports < 2 and not child.has_ended for child in self._children):
            if time.monotonic() > deadline or self._at_once.is_set():
                self.undrained = sum(child.queued for child in self._children)
                return
            await asyncio.sleep(_LOOK_S)

    async def _end(self) -> None:
        limit_s = 0.1 if self._at_once.is_set() else _END_S
        await asyncio.gather(*(child.end(limit_s) for child in self._children))

    def _state(
        self, folder: StateFolder, overlay: NamedOverlay, shares: list[list[BrokerId]]
    ) -> OverlayState:
        configuration = overlay.configuration
        return OverlayState(
            name=folder.name,
            topology=overlay.topology.name,
            algorithm=configuration.routing.algorithm.value,
            pid=os.getpid(),
            started_ns=time.time_ns(),
            ready=False,
            folder=str(folder.path),
            addresses={
                broker.short: str(configuration.addresses[broker])
                for broker in configuration.scot.brokers
            },
            processes=[[broker.short for broker in share] for share in shares],
            stop_s=configuration.limits.drain_s + 2 * _END_S,
            credentials=self._order.credentials,
            metrics=[f"http://{each}/metrics" for each in self._metrics],
        )
