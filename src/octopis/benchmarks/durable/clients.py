"""Publishers, and durable subscribers that can be killed: processes that write down what they see.

`python -m octopis.benchmarks.durable.clients ROLE OPTIONS`. All publishers are one process, which
does what lines on standard input say (`go`, `stop`), and answers with a line each; every subscriber
is a process of its own. Both end when their input does.
"""

import asyncio
import os
import sys
import time
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import TextIO

import msgspec
import numpy as np
import uvloop

import octopis
from octopis.benchmarks.channels.clients import Publisher, attributes_of
from octopis.benchmarks.channels.logs import Wants
from octopis.benchmarks.durable.logs import TAKEN
from octopis.client.client import Client
from octopis.client.durable import DurableNotifications
from octopis.client.streams import Gap, Received
from octopis.errors import OctopisError
from octopis.logs import without_warnings

_PATIENCE_S = 600.0
_STEP_S = 0.02
_AT_ONCE = 400
_ACK_S = 0.5


class Publishers(msgspec.Struct, frozen=True):
    """All publishers, where their brokers are, and the folder of the logs."""

    addresses: dict[str, str]
    folder: str
    publishers: list[Publisher]


class Taker(msgspec.Struct, frozen=True):
    """A durable subscriber, where its broker is, and its log; publishers are known by index."""

    name: str
    address: str
    wants: Wants
    log: str


async def publish(options: Publishers, lines: asyncio.StreamReader) -> None:
    """Publish from `go` to `stop`."""
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        work = []
        for each in options.publishers:
            client = octopis.connect(
                options.addresses[each.at],
                client_id=each.name,
                retry_s=_PATIENCE_S,
                reconnect_s=_PATIENCE_S,
            )
            path = Path(options.folder) / f"{each.name}.said"
            log = stack.enter_context(path.open("a", encoding="utf-8", buffering=1))
            work.append((each, await stack.enter_async_context(client), log))
        _say()
        await lines.readline()
        tasks = [asyncio.create_task(_publish(*each, stop)) for each in work]
        _say()
        if not await lines.readline():  # nobody gives orders any more, nor waits for answers
            for task in tasks:
                task.cancel()
            return
        stop.set()
        await asyncio.gather(*tasks)
        _say()
        await lines.read()


async def _publish(about: Publisher, client: Client, log: TextIO, stop: asyncio.Event) -> None:
    """Keep to a timetable; what a broker keeps waiting is not made up for."""
    payload, name = bytes(about.payload), about.name
    number, due, last = 0, 0.0, time.monotonic()
    while not stop.is_set():
        await asyncio.sleep(_STEP_S)
        now = time.monotonic()
        due = min(due + (now - last) * about.rate, _AT_ONCE)
        last = now
        numbers = range(number, number + int(due))
        due -= len(numbers)
        number = numbers.stop
        if not numbers:
            continue
        mark = ""
        try:
            await client.publish_many((attributes_of(name, each), payload) for each in numbers)
        except OctopisError as failure:
            sys.stderr.write(f"{name}: {len(numbers)} from {numbers.start} on: {failure}\n")
            mark = "? "
        log.write(f"{mark}{numbers.start} {len(numbers)}\n")


async def take(options: Taker, lines: asyncio.StreamReader) -> None:
    """Take what comes, write it down, and acknowledge it now and then, until killed."""
    file = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    indices = {name: index for index, name in enumerate(options.wants.publishers)}
    async with (
        octopis.connect(options.address, retry_s=_PATIENCE_S, reconnect_s=_PATIENCE_S) as client,
        client.subscribe(
            options.wants.filter,
            durable=options.name,
            acks="manual",
            on_gap=lambda gap: _note_gap(options.name, gap),
        ) as stream,
    ):
        _say()
        acking = asyncio.create_task(_acknowledge(stream))
        reading = asyncio.create_task(_take(stream, file, indices))
        ending = asyncio.create_task(lines.read())
        await asyncio.wait([acking, reading, ending], return_when=asyncio.FIRST_COMPLETED)
        for task in (acking, reading):
            if task.done():
                task.result()
            task.cancel()


async def _take(stream: DurableNotifications, file: int, indices: dict[str, int]) -> None:
    async for batch in stream.batches():
        os.write(file, _rows(batch, indices).tobytes())


def _rows(batch: list[Received], indices: dict[str, int]) -> "np.ndarray[tuple[int], np.dtype]":
    rows = np.empty(len(batch), TAKEN)
    for number, each in enumerate(batch):
        whose = indices[str(each.attributes["publisher"])]
        rows[number] = (each.position, whose, each.attributes["number"])
    return rows


async def _acknowledge(stream: DurableNotifications) -> None:
    for _ in count():
        await asyncio.sleep(_ACK_S)
        if stream.position > stream.acked:
            try:
                await stream.ack()
            except octopis.errors.ConnectionFailed:
                continue  # its broker has died: what is not acknowledged yet is so later


def _note_gap(name: str, gap: Gap) -> None:
    sys.stderr.write(f"{name}: a gap: {gap.reason}\n")


def _say() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


async def _main(role: str, options: str) -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    if role == "publish":
        await publish(msgspec.json.decode(options, type=Publishers), lines)
    else:
        await take(msgspec.json.decode(options, type=Taker), lines)


def main() -> None:
    """Play the role that the command line names."""
    with without_warnings("octopis.client"):  # that brokers die is what is tried
        uvloop.run(_main(*sys.argv[1:]))


if __name__ == "__main__":
    main()
