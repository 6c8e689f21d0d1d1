"""Live brokers in tests: on one event loop, on free ports of the loopback, with short limits."""

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from queue import Queue
from typing import Any

import uvloop

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import Limits, OverlayConfiguration
from octopis.client.client import Client, connect
from octopis.core.delivery.options import DeliveryOptions, Level
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from octopis.core.wire.frames import Frame, FrameDecoder
from octopis.core.wire.greeting import ClientHello, encode_hello
from octopis.overlay.deployment import running

LIMITS = Limits(redial_s_max=0.1, drain_s=1.0, sync_s=5.0, notice_renewal_s=0.3)
Brokers = dict[BrokerId, LiveBroker]


def line(regions: int, clusters: int = 1) -> SCOT:
    """Return regions a - b - c ... in so many clusters."""
    labels = "abcdefghij"[:regions]
    edges = list(itertools.pairwise(labels))
    return SCOT(AcyclicFactor(list(labels), edges), ConnectivityFactor.complete(clusters))


def run_live(work: Coroutine[Any, Any, Any], limit_s: float = 60.0) -> None:
    """Run a test on an event loop, within a time limit."""
    uvloop.run(asyncio.wait_for(work, limit_s))


async def until(holds: Callable[[], object], limit_s: float = 20.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, "the condition did not come to hold in time"
        await asyncio.sleep(0.005)


PLAIN = DeliveryOptions(Level.NONE)
"""Target routing without channels."""


def overlay(scot: SCOT, algorithm: Algorithm = Algorithm.SNR, **options: Any) -> Any:
    """Return a configuration with short limits; options are its own, or those of routing."""
    names = RoutingOptions.__struct_fields__
    routing = {name: options.pop(name) for name in list(options) if name in names}
    chosen = {"scot": scot, "routing": RoutingOptions(algorithm, **routing), "limits": LIMITS}
    return OverlayConfiguration(**chosen | options)


@asynccontextmanager
async def ready(configuration: OverlayConfiguration) -> AsyncIterator[Brokers]:
    """Run all brokers, and wait until they take requests."""
    async with running(configuration) as live:
        for broker in live.values():
            await broker.ready.wait()
        yield live


@contextmanager
def in_a_thread(
    configuration: OverlayConfiguration, prepare: Callable[[Brokers], object] = lambda _: None
) -> Iterator[dict[str, str]]:
    """Run all brokers in a thread, for tests of commands; yield where to connect to each."""
    found: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event, dict[str, str]]] = Queue()

    async def work() -> None:
        stop = asyncio.Event()
        async with ready(configuration) as live:
            prepare(live)
            urls = {broker.short: f"octopis://{each.address}" for broker, each in live.items()}
            found.put((asyncio.get_running_loop(), stop, urls))
            await stop.wait()

    thread = threading.Thread(target=uvloop.run, args=(work(),))
    thread.start()
    loop, stop, urls = found.get(timeout=30)
    try:
        yield urls
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def fall_silent(broker: LiveBroker) -> None:
    """Let a broker take in no inquiries any more, as one that hangs."""
    broker.inquiries.heard = lambda *_: None  # type: ignore[method-assign]


def client_of(broker: LiveBroker, **options: Any) -> Client:
    """Return a client of a broker."""
    return connect(f"octopis://{broker.address}", **options)


async def tables_hold(live: Brokers, count: int) -> None:
    """Wait until every broker knows so many subscriptions."""
    await until(lambda: all(len(broker.core.table) == count for broker in live.values()))


async def quiet(live: Brokers) -> None:
    """Wait until nothing moves any more: no count has changed for a while."""

    def counts() -> list[int]:
        counters = [broker.core.counters for broker in live.values()]
        return [each.notification_ims + each.deliveries for each in counters]

    still, before = 0, counts()
    while still < 10:
        await asyncio.sleep(0.01)
        now = counts()
        still = still + 1 if now == before else 0
        before = now


class RawPeer:
    """Somebody who connects and speaks in bytes of the test's choice."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = FrameDecoder()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def frames(self, limit_s: float = 10.0) -> list[Frame]:
        """Return every frame until the broker closes the connection."""
        found = []
        async with asyncio.timeout(limit_s):
            while data := await self._read():
                found += self._decoder.receive_data(data)
        return found

    async def next_frames(self, limit_s: float = 10.0) -> list[Frame]:
        """Return the next frames that arrive together."""
        async with asyncio.timeout(limit_s):
            while True:
                data = await self._read()
                assert data, "the broker has closed the connection"
                if found := self._decoder.receive_data(data):
                    return found

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(65_536)
        except ConnectionError:
            return b""


@asynccontextmanager
async def raw_peer(broker: LiveBroker) -> AsyncIterator[RawPeer]:
    """Connect to a broker without a word."""
    reader, writer = await asyncio.open_connection(*broker.address)
    try:
        yield RawPeer(reader, writer)
    finally:
        writer.close()


@asynccontextmanager
async def raw_client(broker: LiveBroker, name: str = "raw") -> AsyncIterator[RawPeer]:
    """Connect to a broker as a client that has been welcomed."""
    async with raw_peer(broker) as peer:
        await peer.send(encode_hello(ClientHello(name, window=100)))
        await peer.next_frames()
        yield peer
