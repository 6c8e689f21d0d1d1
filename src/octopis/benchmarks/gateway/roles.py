"""The loads of `octopis bench gateway`: HTTP clients as lean as they can be.

Each is `python -m octopis.benchmarks.gateway.roles ROLE OPTIONS` with options as JSON. It prints a
line when it is ready, waits for one, and prints what it measured.
"""

import asyncio
import sys
import time
from typing import Any, cast
from urllib.parse import quote

import msgspec
import uvloop
from websockets.asyncio.client import connect as connect_websocket

import octopis

_BODY = b'{"symbol":"IBM","price":84.5,"volume":1200,"exchange":"NYSE","open":true}'
_EVENT = b"ce-specversion: 1.0\r\nce-id: 1\r\nce-source: /bench\r\nce-type: quote\r\n"
_ACCEPTED = b'{"accepted":1}'
_PIECE = 500
"""Lines, or notifications, that are sent together."""

_AHEAD = 4_000
"""How many notifications are published ahead of the slowest reader."""


class Poster(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self, request: bytes, deadline: list[float]) -> None:
        self.done = 0
        self.lost = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request, self._deadline = request, deadline
        self._transport: asyncio.Transport | None = None
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast("asyncio.Transport", transport)

    def begin(self) -> None:
        """Send the first request."""
        assert self._transport is not None
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Take an answer, and ask again."""
        self._read += data
        if not self._read.endswith(_ACCEPTED):
            return
        self._read = b""
        self.done += 1
        if time.monotonic() < self._deadline[0]:
            self.begin()
        else:
            self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's interface
        """Count what has no answer."""
        if not self.ended.done():
            self.lost += 1
            self.ended.set_result(None)


async def poster(options: dict[str, Any]) -> None:
    """Publish one notification a request, over many connections."""
    host, port = options["gateway"].split(":")
    extra = _EVENT if options.get("events") else b""
    request = (
        b"POST /notifications HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        b"%bcontent-length: %d\r\n\r\n%b" % (extra, len(_BODY), _BODY)
    )
    deadline = [0.0]
    loop = asyncio.get_running_loop()
    posters = []
    for _ in range(options["connections"]):
        _, protocol = await loop.create_connection(lambda: Poster(request, deadline), host, port)
        posters.append(protocol)
    await _wait_for_go()
    started = time.monotonic()
    deadline[0] = started + options["seconds"]
    for each in posters:
        each.begin()
    await asyncio.gather(*(each.ended for each in posters))
    _tell(sum(each.done for each in posters), started, sum(each.lost for each in posters))


async def streamer(options: dict[str, Any]) -> None:
    """Publish lines, as fast as they are taken."""
    host, port = options["gateway"].split(":")
    lines = (_BODY + b"\n") * _PIECE
    piece = b"%x\r\n%b\r\n" % (len(lines), lines)
    reader, writer = await asyncio.open_connection(host, int(port))
    await _wait_for_go()
    started = time.monotonic()
    writer.write(
        b"POST /notifications HTTP/1.1\r\nhost: bench\r\ncontent-type: application/x-ndjson\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )
    sent = 0
    while time.monotonic() < started + options["seconds"]:
        writer.write(piece)
        sent += _PIECE
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    answer = b""
    while b"}" not in answer:
        answer += await reader.read(65_536)
    accepted = msgspec.json.decode(answer[answer.index(b"{") :])["accepted"]
    _tell(accepted, started, sent - accepted)


class Counter:
    """Counts what readers have got; publishers keep a little ahead."""

    def __init__(self, readers: int) -> None:
        self.got = [0] * readers
        self.gaps = 0
        self._moved = asyncio.Event()

    def add(self, reader: int, count: int, gaps: int) -> None:
        """Note that a reader has got more."""
        self.got[reader] += count
        self.gaps += gaps
        self._moved.set()

    async def until(self, count: int) -> None:
        """Wait until every reader has got so many."""
        while min(self.got) < count and not self.gaps:
            self._moved.clear()
            await self._moved.wait()


async def reader(options: dict[str, Any]) -> None:
    """Read server-sent events over many connections, and publish what they get."""
    host, port = options["gateway"].split(":")
    counter = Counter(options["readers"])
    tasks, writers = [], []
    for number in range(options["readers"]):
        text = f"price > {number % options['filters']}"
        stream, writer = await asyncio.open_connection(host, int(port), limit=2**20)
        writer.write(
            f"GET /notifications?filter={quote(text)} HTTP/1.1\r\nhost: bench\r\n\r\n".encode()
        )
        await stream.readuntil(b": subscribed\n\n")
        writers.append(writer)  # who lets go of it closes the connection
        tasks.append(asyncio.create_task(_read_events(stream, number, counter)))
    await _publish(options, counter)


async def _read_events(stream: asyncio.StreamReader, number: int, counter: Counter) -> None:
    rest = b""
    while data := await stream.read(2**18):
        data = rest + data
        counter.add(number, data.count(b"\ndata: "), data.count(b"event: gap"))
        rest = data[-6:]  # too short for either, so that nothing counts twice


async def socket(options: dict[str, Any]) -> None:
    """Read over WebSockets, and publish what they get."""
    counter = Counter(options["readers"])
    tasks = []
    for number in range(options["readers"]):
        one = await connect_websocket(f"ws://{options['gateway']}/ws", max_size=None)
        await one.send('{"type":"subscribe","id":"s","filter":"price > 1"}')
        await one.recv()
        tasks.append(asyncio.create_task(_read_socket(one, number, counter)))
    await _publish(options, counter)


async def _read_socket(one: Any, number: int, counter: Counter) -> None:
    while True:
        text = await one.recv(decode=False)
        gaps = text.count(b'"type":"gap"')
        counter.add(number, text.count(b'"type":"notification"'), gaps)


async def _publish(options: dict[str, Any], counter: Counter) -> None:
    """Publish at the broker, a little ahead of the slowest reader."""
    notification = msgspec.json.decode(_BODY)
    async with octopis.connect(options["broker"]) as client:
        await client.settled()
        await _wait_for_go()
        started = time.monotonic()
        published = 0
        while time.monotonic() < started + options["seconds"]:
            await client.publish_many([notification] * _PIECE)
            published += _PIECE
            await counter.until(published - _AHEAD)
        await counter.until(published)
        _tell(sum(counter.got), started, counter.gaps)


async def _wait_for_go() -> None:
    _say({"ready": True})
    await asyncio.to_thread(sys.stdin.readline)


def _tell(items: int, started: float, lost: int) -> None:
    _say({"items": items, "seconds": time.monotonic() - started, "lost": lost})


def _say(facts: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(facts).decode() + "\n")
    sys.stdout.flush()


def main() -> None:
    """Play the role that the command line names."""
    roles = {"poster": poster, "streamer": streamer, "reader": reader, "socket": socket}
    uvloop.run(roles[sys.argv[1]](msgspec.json.decode(sys.argv[2])))


if __name__ == "__main__":
    main()
