"""Brokers in this process: start them together, stop them in order."""

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import uvloop

from octopis.live.broker import LiveBroker
from octopis.live.configuration import Address, OverlayConfiguration
from octopis.model import BrokerId

_log = logging.getLogger(__name__)
Addresses = dict[BrokerId, Address]


@asynccontextmanager
async def running(
    overlay: OverlayConfiguration, brokers: Sequence[BrokerId] | None = None
) -> AsyncIterator[dict[BrokerId, LiveBroker]]:
    """Run brokers of an overlay (all, unless told which) on this event loop.

    Those of them with port 0 take any port; `broker.address` says which. Brokers elsewhere
    must have addresses in `overlay`. Raises OperationFailed where an address is taken.
    """
    chosen = overlay.scot.brokers if brokers is None else brokers
    live: dict[BrokerId, LiveBroker] = {}
    try:
        for broker in chosen:
            live[broker] = LiveBroker(broker, overlay)
            await live[broker].listen()
        here = {broker: each.address for broker, each in live.items()}
        for each in live.values():
            each.start({**overlay.addresses, **here})
        yield live
    finally:
        await asyncio.gather(*(each.stop() for each in live.values()))


def run(
    overlay: OverlayConfiguration,
    brokers: Sequence[BrokerId] | None = None,
    on_ready: Callable[[Addresses], None] | None = None,
) -> None:
    """Run brokers in this process until SIGTERM or SIGINT; then drain and stop.

    `on_ready` is called with the addresses once all of them take requests.
    """
    # Brokers make garbage by the million but no cycles: look for those less often, and not in
    # what is here to stay.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    uvloop.run(_run(overlay, brokers, on_ready))


async def _run(
    overlay: OverlayConfiguration,
    brokers: Sequence[BrokerId] | None,
    on_ready: Callable[[Addresses], None] | None,
) -> None:
    loop = asyncio.get_running_loop()
    told_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    async with running(overlay, brokers) as live:
        ready = loop.create_task(_ready(live.values()))
        stop = loop.create_task(told_to_stop.wait())
        await asyncio.wait([ready, stop], return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and on_ready is not None:
            on_ready({broker: each.address for broker, each in live.items()})
        await stop
        ready.cancel()
        _log.info("stopping %d brokers", len(live))


async def _ready(brokers: Iterable[LiveBroker]) -> None:
    for broker in brokers:
        await broker.ready.wait()
