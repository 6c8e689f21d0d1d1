"""The clients of `octopis bench durable`, each a process of its own.

`python -m octopis.benchmarks.durable.roles ROLE OPTIONS`, as those of `live/roles`: one line of
JSON when it is ready, a line that lets it go, and one with what it measured.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import uvloop

import octopis
from octopis.client.client import Client
from octopis.core.model import Value
from octopis.core.wire.published import encode_published
from octopis.scenario.stock import StockWorkload

DURABLE = "bench"
_KEPT = 20_000
"""So many different notifications there are; then they come again."""


def notifications(seed: int, count: int, size: int) -> Iterator[tuple[dict[str, Value], bytes]]:
    """Yield notifications of about that many encoded bytes each."""
    quotes = StockWorkload(seed).notifications(min(count, _KEPT))
    bare = len(encode_published(quotes[0], b"", "publisher", count, time.time_ns()))
    payload = bytes(max(0, size - bare))
    for number in range(count):
        yield quotes[number % len(quotes)], payload


async def publisher(options: dict[str, Any]) -> None:
    """Publish, so many at a time (0: by `publish_many`), when told to go."""
    made = list(notifications(options["seed"], options["notifications"], options["bytes"]))
    async with octopis.connect(options["address"]) as client:
        _say({"notifications": len(made)})
        await asyncio.to_thread(sys.stdin.readline)
        started = time.monotonic()
        if options["under_way"]:
            rest = iter(made)
            tasks = [_publish(client, rest) for _ in range(options["under_way"])]
            await asyncio.gather(*tasks)
        else:
            await client.publish_many(made)
        _say({"started": started, "accepted": time.monotonic()})


async def _publish(client: Client, rest: Iterator[tuple[dict[str, Value], bytes]]) -> None:
    for attributes, payload in rest:
        await client.publish(attributes, payload)


async def pinger(options: dict[str, Any]) -> None:
    """Publish one after the other, and say how long each took."""
    made = notifications(options["seed"], options["notifications"], options["bytes"])
    async with octopis.connect(options["address"]) as client:
        seconds = []
        for attributes, payload in made:
            begun = time.perf_counter()
            await client.publish(attributes, payload)
            seconds.append(time.perf_counter() - begun)
    seconds.sort()
    _say({"median_ms": seconds[len(seconds) // 2] * 1000})


async def owner(options: dict[str, Any]) -> None:
    """Make a durable subscription to everything, which nobody reads."""
    async with (
        octopis.connect(options["address"]) as client,
        client.subscribe("TRUE", durable=DURABLE),
    ):
        _say({})


async def stream(options: dict[str, Any]) -> None:
    """Catch up by a stream, when told to go."""
    wanted, came = options["notifications"], 0
    async with octopis.connect(options["address"]) as client:
        _say({})
        await asyncio.to_thread(sys.stdin.readline)
        started = time.monotonic()
        async with client.subscribe(durable=DURABLE, acks="manual") as found:
            async for batch in found.batches():
                came += len(batch)
                if came >= wanted:
                    break
        _say({"started": started, "came": came, "finished": time.monotonic()})


async def reader(options: dict[str, Any]) -> None:
    """Read all positions in batches, so many under way at a time, when told to go."""
    last, count = options["notifications"], options["batch"]
    came = 0

    async def read(starts: Iterator[int]) -> None:
        nonlocal came
        for start in starts:
            after, until = start, min(start + count, last)
            while after < until:
                batch = await client.read(DURABLE, after, until - after)
                came += len(batch.notifications)
                after = batch.notifications[-1].position

    async with octopis.connect(options["address"]) as client:
        _say({})
        await asyncio.to_thread(sys.stdin.readline)
        started = time.monotonic()
        starts = iter(range(0, last, count))
        await asyncio.gather(*(read(starts) for _ in range(options["under_way"])))
        _say({"started": started, "came": came, "finished": time.monotonic()})


def _say(facts: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(facts).decode() + "\n")
    sys.stdout.flush()


ROLES = {each.__name__: each for each in (publisher, pinger, owner, stream, reader)}


def main() -> None:
    """Play the role that the command line names."""
    uvloop.run(ROLES[sys.argv[1]](msgspec.json.decode(sys.argv[2])))


if __name__ == "__main__":
    main()
