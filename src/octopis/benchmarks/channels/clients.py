"""A process of publishers and subscribers that write down what happens to them, each on its own.

`python -m octopis.benchmarks.channels.clients OPTIONS` connects them all, and then does what lines
on standard input say; to each it answers with a line of JSON: how much every client has got, or was
accepted, so far. It ends when the input does.

    look           nothing but the answer
    go NAME ...    publishers of these names begin, or all of them
    stop           all stop, and all that was accepted is in their logs
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

import msgspec
import uvloop

import octopis
from octopis.benchmarks.channels.logs import KINDS, Wants
from octopis.benchmarks.processes import end_of_orders
from octopis.client.client import WINDOW, Client
from octopis.client.streams import Gap, Notifications
from octopis.core.model import Value
from octopis.errors import OctopisError, OperationFailed
from octopis.logs import without_warnings

_CONNECT_S = 60.0
_STEP_S = 0.01
_AT_ONCE = 100
_AGAIN_S = 0.05


class Somebody(msgspec.Struct, frozen=True):
    """A client with a name, at a broker."""

    name: str
    at: str


class Publisher(Somebody, frozen=True):
    """One who publishes so much in a second, with so many bytes of payload."""

    rate: float
    payload: int = 0


class Subscriber(Somebody, frozen=True):
    """One who wants something, and reads it; or who reads nothing at all."""

    wants: Wants
    reads: bool = True
    window: int = WINDOW


class Clients(msgspec.Struct, frozen=True):
    """All clients of a process, where brokers are, and the folder of the logs."""

    addresses: dict[str, str]
    folder: str
    publishers: list[Publisher] = []
    subscribers: list[Subscriber] = []


class _Work:
    """The clients of this process at work."""

    def __init__(self, clients: Clients, stack: AsyncExitStack) -> None:
        self._clients = clients
        self._stack = stack
        self._stop = asyncio.Event()
        self._publishing: list[asyncio.Task[None]] = []
        self._connected: dict[str, Client] = {}
        self._logs: dict[str, TextIO] = {}
        self._reading: list[asyncio.Task[None]] = []
        self.counts: dict[str, int] = {}

    async def connect(self) -> None:
        """Connect everybody; subscribers subscribe."""
        everybody: list[Somebody] = [*self._clients.publishers, *self._clients.subscribers]
        for each in everybody:
            client = octopis.connect(
                self._clients.addresses[each.at],
                client_id=each.name,
                retry_s=_CONNECT_S,
                window=getattr(each, "window", WINDOW),
            )
            self._connected[each.name] = await self._stack.enter_async_context(client)
            path = Path(self._clients.folder) / f"{each.name}.log"
            self._logs[each.name] = self._stack.enter_context(path.open("w", encoding="utf-8"))
            self.counts[each.name] = 0
        for subscriber in self._clients.subscribers:
            log = self._logs[subscriber.name]
            stream = self._connected[subscriber.name].subscribe(
                subscriber.wants.filter, on_gap=partial(_note_gap, log)
            )
            await stream.open()
            if subscriber.reads:
                self._reading.append(asyncio.create_task(self._read(subscriber.name, stream)))

    async def obey(self, order: str, *names: str) -> None:
        """Do what a line says."""
        if order == "go":
            self._publishing += [
                asyncio.create_task(self._publish(each))
                for each in self._clients.publishers
                if each.name in names or not names
            ]
        elif order == "stop":
            self._stop.set()
            await asyncio.gather(*self._publishing)
        for log in self._logs.values():
            log.flush()

    async def end(self) -> None:
        """Let nobody read or publish any more."""
        tasks = [*self._reading, *self._publishing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, name: str, stream: Notifications) -> None:
        log = self._logs[name]
        async for batch in stream.batches():
            now = time.monotonic()
            self.counts[name] += len(batch)
            log.writelines(
                f"{now:.4f} {each.attributes['publisher']} {each.attributes['number']}\n"
                for each in batch
            )

    async def _publish(self, publisher: Publisher) -> None:
        """Keep to a timetable; what a broker keeps waiting is not made up for."""
        client, log = self._connected[publisher.name], self._logs[publisher.name]
        payload = bytes(publisher.payload)
        number, due, last = 0, 0.0, time.monotonic()
        while not self._stop.is_set():
            await asyncio.sleep(_STEP_S)
            now = time.monotonic()
            due = min(due + (now - last) * publisher.rate, _AT_ONCE)
            last = now
            numbers = range(number, number + int(due))
            due -= len(numbers)
            number = numbers.stop
            try:
                await client.publish_many(
                    (attributes_of(publisher.name, each), payload) for each in numbers
                )
            except OctopisError as failure:
                log.write(f"! {len(numbers)} from {numbers.start} on: {failure}\n")
                await asyncio.sleep(_AGAIN_S)
                continue
            if numbers:
                log.write(f"{time.monotonic():.4f} {numbers.start} {len(numbers)}\n")
                self.counts[publisher.name] += len(numbers)


def attributes_of(publisher: str, number: int) -> dict[str, Value]:
    """Return what a publisher publishes under a number."""
    return {"publisher": publisher, "number": number, "kind": number % KINDS}


def _note_gap(log: TextIO, gap: Gap) -> None:
    log.write(f"! gap: {gap.reason}\n")


async def _main(clients: Clients) -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with AsyncExitStack() as stack:
        work = _Work(clients, stack)
        await work.connect()
        try:
            _answer(work)
            while line := await lines.readline():
                await work.obey(*line.decode().split())
                _answer(work)
        finally:
            await work.end()


def _answer(work: _Work) -> None:
    sys.stdout.write(msgspec.json.encode(work.counts).decode() + "\n")
    sys.stdout.flush()


class ClientProcess:
    """The other end: a process of clients, as whoever has started it sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def tell(self, order: str) -> dict[str, int]:
        """Let it do something; return the counts of all its clients."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n".encode())
        return await self.answer()

    async def answer(self) -> dict[str, int]:
        """Return what it says."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise OperationFailed("a process of clients has ended too early")
        return msgspec.json.decode(line, type=dict[str, int])


@asynccontextmanager
async def client_process(clients: Clients) -> AsyncIterator[ClientProcess]:
    """Run clients in a process of their own; whatever happens, it ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "octopis.benchmarks.channels.clients"),
        msgspec.json.encode(clients).decode(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us alone, who then end it
    )
    try:
        found = ClientProcess(process)
        await found.answer()
        yield found
    finally:
        await end_of_orders(process)


def main() -> None:
    """Run the clients that the command line names."""
    with without_warnings("octopis.client"):  # they stand in the logs
        uvloop.run(_main(msgspec.json.decode(sys.argv[1], type=Clients)))


if __name__ == "__main__":
    main()
