"""A way to a broker that is cut after so many bytes, in either direction, or at once."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from octopis.broker.broker import LiveBroker
from octopis.client.address import Address
from octopis.client.client import Client, connect
from octopis.client.streams import Gap, Notifications
from support.live import client_of, line, overlay, ready, until

(HERE,) = line(1).brokers


class Cut(NamedTuple):
    """After so many bytes to the broker (`up`) or from it, the connection breaks.

    Where the broker is `unaware`, it notices nothing: its end stays open, and silent.
    """

    after: int
    up: bool = False
    unaware: bool = False


class CuttingProxy:
    """Passes bytes on between clients and a broker, until it is told to cut."""

    def __init__(self, target: Address) -> None:
        self.target = target
        self._cuts: deque[Cut] = deque()
        self._ways: list[_Way] = []
        self.cuts_done = 0
        self.is_shut = False
        """Whether nobody gets through."""

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._arrived, "127.0.0.1", 0)
        self.url = "octopis://{}:{}".format(*self._server.sockets[0].getsockname()[:2])

    def close(self) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Cut all connections now."""
        for way in self._ways:
            way.cut(unaware=False)

    def arm(self, *cuts: Cut) -> None:
        """Cut the connection that stands by the first of these, and then each that comes."""
        self._cuts.extend(cuts)
        if self._ways and not self._ways[-1].is_cut:
            self._ways[-1].armed = self.next_cut()

    def next_cut(self) -> Cut | None:
        return self._cuts.popleft() if self._cuts else None

    async def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_shut:
            writer.transport.abort()
            return
        broker = await asyncio.open_connection(*self.target)
        way = _Way(self, writer, broker[1])
        self._ways.append(way)
        way.armed = self.next_cut()
        await asyncio.gather(
            way.carry(reader, broker[1], up=True),
            way.carry(broker[0], writer, up=False),
            return_exceptions=True,
        )


class _Way:
    """One connection through the proxy."""

    def __init__(
        self, proxy: CuttingProxy, client: asyncio.StreamWriter, broker: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._ends = client, broker
        self._carried = {True: 0, False: 0}
        self._armed: Cut | None = None
        self.is_cut = False

    @property
    def armed(self) -> Cut | None:
        return self._armed

    @armed.setter
    def armed(self, cut: Cut | None) -> None:
        self._armed = cut
        self._carried = {True: 0, False: 0}

    async def carry(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, up: bool
    ) -> None:
        while data := await source.read(4_096):
            cut = self.armed
            if self.is_cut:
                return
            if cut is not None and cut.up is up and self._carried[up] + len(data) >= cut.after:
                target.write(data[: cut.after - self._carried[up]])
                await asyncio.sleep(0.001)  # what was passed on is to arrive
                self._proxy.cuts_done += 1
                self.cut(unaware=cut.unaware)
                return
            self._carried[up] += len(data)
            target.write(data)
            await target.drain()
        if not self.is_cut:
            self.cut(unaware=False)

    def cut(self, *, unaware: bool) -> None:
        self.is_cut = True
        client, broker = self._ends
        client.transport.abort()
        if not unaware:
            broker.transport.abort()


@asynccontextmanager
async def cutting_proxy(broker: LiveBroker) -> AsyncIterator[CuttingProxy]:
    """Let clients reach a broker by a way that the test cuts."""
    proxy = CuttingProxy(broker.address)
    await proxy.listen()
    try:
        yield proxy
    finally:
        proxy.close()


async def numbers(notifications: Notifications, count: int) -> list[int]:
    async with asyncio.timeout(20):
        return [(await anext(notifications)).attributes["n"] for _ in range(count)]


async def cut(proxy: CuttingProxy, broker: LiveBroker, client: Client) -> None:
    """Cut a client off until the proxy is opened again, and wait until its broker keeps it."""
    proxy.is_shut = True
    proxy.cut()
    await until(lambda: client.id not in broker.clients or broker.clients[client.id].is_kept)


async def let_in(proxy: CuttingProxy, client: Client) -> None:
    """Open the proxy to a client, and wait until it has begun anew."""
    before, proxy.is_shut = client._session, False
    await until(lambda: client._session not in ("", before))


@asynccontextmanager
async def cut_off_reader(
    gaps: list[Gap], window: int = 100, **options: object
) -> AsyncIterator[tuple[LiveBroker, CuttingProxy, Client, Client, Notifications]]:
    """Yield a broker, a proxy that is shut, a writer, a reader that is cut off, and its stream."""
    async with (
        ready(overlay(line(1), **options)) as live,
        cutting_proxy(live[HERE]) as proxy,
        client_of(live[HERE]) as writer,
        connect(proxy.url, window=window) as reader,
        reader.subscribe("n >= 0", on_gap=gaps.append) as notifications,
    ):
        await cut(proxy, live[HERE], reader)
        yield live[HERE], proxy, writer, reader, notifications
