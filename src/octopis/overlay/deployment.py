"""Brokers in this process: where they listen, start them together, stop them in order.

All of them listen before any of them runs. So a port that is taken is found before anything has
started, and ports that the system chooses are known to all.
"""

import asyncio
import errno
import gc
import logging
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import uvloop

from octopis.broker.broker import LiveBroker
from octopis.broker.pace import Pace
from octopis.broker.recorder import Recorder, TraceRecorder
from octopis.broker.settings import OverlayConfiguration
from octopis.broker.tracing import TraceOptions, Tracing
from octopis.client.address import DEFAULT_PORT, Address
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.overlay.settings import PORT_MAX

Addresses = dict[BrokerId, Address]

_BACKLOG = 1_024
_LOOK_S = 0.02
_log = logging.getLogger(__name__)


# Where brokers listen


def planned(overlay: OverlayConfiguration, first_port: int | None) -> Addresses:
    """Return where brokers are to listen.

    With `first_port`, their ports follow each other from it (0: any that are free). Without it,
    brokers keep the ports of their configuration, and the others follow from 7400.
    """
    taken = {address.port for address in overlay.addresses.values()}
    ports = iter(range(DEFAULT_PORT if first_port is None else first_port, PORT_MAX + 1))
    found = {}
    for broker in overlay.scot.brokers:
        host, port = overlay.address(broker)
        if first_port is not None:
            port = next(ports, -1) if first_port else 0
        elif not port:
            port = next((each for each in ports if each not in taken), -1)
        if not 0 <= port <= PORT_MAX:
            raise InvalidConfiguration(
                f"there are not enough ports from {first_port or DEFAULT_PORT} on for "
                f"{len(overlay.scot.brokers)} brokers: begin lower"
            )
        found[broker] = Address(host, port)
    return found


def planned_links(overlay: OverlayConfiguration, places: Addresses) -> Addresses:
    """Return where brokers are to listen for neighbours under security; `places` are for clients.

    They keep the ports of their configuration, and the others follow after those for clients.
    """
    if not overlay.is_secure:
        return {}
    taken = {place.port for place in places.values()} | {*overlay.link_ports.values()}
    ports = (each for each in range(max(taken) + 1, PORT_MAX + 1))
    found = {}
    for broker, place in places.items():
        port = overlay.link_ports.get(broker, 0)
        if not port and place.port:
            port = next(ports, -1)
        if port < 0:
            raise InvalidConfiguration(
                f"there are not enough ports after {max(taken)} for the links of "
                f"{len(places)} brokers: begin lower, or give them link_port"
            )
        found[broker] = Address(place.host, port)
    return found


def open_listeners(places: Addresses) -> dict[BrokerId, socket.socket]:
    """Return a socket that listens for each broker, or raise OperationFailed and leave none."""
    listeners: dict[BrokerId, socket.socket] = {}
    try:
        for broker, address in places.items():
            listeners[broker] = _listen(broker, address)
    except OperationFailed:
        for listener in listeners.values():
            listener.close()
        raise
    return listeners


def address_of(listener: socket.socket) -> Address:
    """Return where a socket listens."""
    host, port = listener.getsockname()[:2]
    return Address(host, port)


def _listen(broker: BrokerId, address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as failure:
        raise OperationFailed(
            f"{broker} cannot listen at {address}: {_reason(failure)}; nothing was "
            "started. See octopis overlay status, or choose other ports with --port"
        ) from failure


def _reason(failure: OSError) -> str:
    # Python adds its own words about the address, which stands in the sentence already.
    number = failure.errno
    if number is None or number not in errno.errorcode:
        return str(failure)
    return os.strerror(number)


# Running them


@asynccontextmanager
async def running(
    overlay: OverlayConfiguration,
    brokers: Sequence[BrokerId] | None = None,
    listeners: Mapping[BrokerId, socket.socket] | None = None,
    trace: TraceOptions | None = None,
    link_listeners: Mapping[BrokerId, socket.socket] | None = None,
) -> AsyncIterator[dict[BrokerId, LiveBroker]]:
    """Run brokers of an overlay (all, unless told which) on this event loop.

    Those of them with port 0 take any port; `broker.address` says which. Brokers elsewhere
    must have addresses in `overlay`. `listeners` that are there already are used as they are.
    With `trace`, each broker leaves one. Raises OperationFailed where an address is taken.
    """
    chosen = overlay.scot.brokers if brokers is None else brokers
    live: dict[BrokerId, LiveBroker] = {}
    pace = Pace()
    parse_filter("TRUE")  # the grammar is loaded before anybody waits for a broker
    async with AsyncExitStack() as stack:
        tracing = None
        if trace is not None:
            made = Tracing(trace, chosen, is_private=overlay.is_secure)
            tracing = stack.enter_context(made)
        if overlay.metrics.is_on:
            from octopis.broker.metrics.server import exposed  # noqa: PLC0415 - an extra brings it

            await stack.enter_async_context(exposed(overlay, live))
        recorder_of = _plain_recorders(overlay, tracing)
        if overlay.tracing.is_on:
            from octopis.broker.telemetry.recorder import recorders  # noqa: PLC0415 - as above

            spans = recorders(overlay, recorder_of)
            recorder_of = await stack.enter_async_context(spans)
        try:
            for broker in chosen:
                live[broker] = LiveBroker(broker, overlay, recorder_of(broker), pace)
                own = (listeners or {}).get(broker), (link_listeners or {}).get(broker)
                await live[broker].listen(*own)
            elsewhere = {other: overlay.link_address(other) for other in overlay.addresses}
            here = {broker: each.link_address for broker, each in live.items()}
            for each in live.values():
                each.start({**elsewhere, **here})
            yield live
        finally:
            # None stops before all are empty: what one of them holds may go through another.
            for each in live.values():
                each.begin_stop()
            await _drained(list(live.values()))
            await asyncio.gather(*(each.stop() for each in live.values()))


def _plain_recorders(
    overlay: OverlayConfiguration, tracing: Tracing | None
) -> Callable[[BrokerId], Recorder]:
    """Return what makes the recorder of each broker, but for spans."""
    if tracing is None:
        return lambda _: Recorder()
    return lambda broker: TraceRecorder(broker, overlay, tracing)


def run(
    overlay: OverlayConfiguration,
    brokers: Sequence[BrokerId] | None = None,
    on_ready: Callable[[Addresses], None] | None = None,
    trace: TraceOptions | None = None,
) -> None:
    """Run brokers in this process until SIGTERM or SIGINT; then drain and stop.

    `on_ready` is called with the addresses once all of them take requests.
    """
    raise_file_limit()
    spare_the_collector()
    uvloop.run(_run(overlay, brokers, on_ready, trace))


def raise_file_limit() -> None:
    """Let links, clients and tables be as many open files as the system lets us have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def spare_the_collector() -> None:
    """Look for cycles in a little at a time, and hardly ever in what is here to stay.

    Brokers make garbage by the million, but no cycles. Looking through 100,000 new objects takes
    about 10 ms, for which everybody waits.
    """
    gc.freeze()
    gc.set_threshold(5_000, 20, 5_000)


async def _run(
    overlay: OverlayConfiguration,
    brokers: Sequence[BrokerId] | None,
    on_ready: Callable[[Addresses], None] | None,
    trace: TraceOptions | None,
) -> None:
    loop = asyncio.get_running_loop()
    stop_asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_asked.set)
    async with running(overlay, brokers, trace=trace) as live:
        ready = loop.create_task(all_ready(live.values()))
        stop = loop.create_task(stop_asked.wait())
        broken = loop.create_task(any_broken(live.values()))
        await asyncio.wait([ready, stop, broken], return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not stop.done() and on_ready is not None:
            on_ready({broker: each.address for broker, each in live.items()})
        await asyncio.wait([stop, broken], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        _log.info("stopping %d brokers", len(live))
        if not stop.done():
            raise RuntimeError("a broker does not work any more") from broken.result()
        broken.cancel()


async def all_ready(brokers: Iterable[LiveBroker]) -> None:
    """Wait until every broker takes requests and has all its links."""
    for broker in brokers:
        await broker.ready.wait()
        while not broker.has_all_links:
            await asyncio.sleep(_LOOK_S)


async def any_broken(brokers: Iterable[LiveBroker]) -> BaseException:
    """Wait until one of these brokers does not work any more; return why."""
    broken = [each.broken for each in brokers]
    done, _ = await asyncio.wait(broken, return_when=asyncio.FIRST_COMPLETED)
    return done.pop().result()


async def _drained(brokers: list[LiveBroker]) -> None:
    """Wait until no queue holds anything, looking twice, or until brokers wait no longer."""
    empty = 0
    while len(brokers) > 1 and empty < 2:
        empty = 0 if any(each.queued for each in brokers) else empty + 1
        if asyncio.get_running_loop().time() > max(each.drain_until for each in brokers):
            return
        await asyncio.sleep(_LOOK_S)
