"""The attacks: each within the protocol, each by a process of its own.

It is `python -m octopis.benchmarks.attack.attackers NAME FIELD` with a field as JSON. When it is
prepared it prints how the brokers have taken that, waits for a line, attacks until another line or
the end of its input, and prints it again. It gives way to brokers where there are too few cores
for all: an attacker has a machine of his own.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from itertools import count
from typing import NoReturn

import msgspec
import uvloop

from octopis.benchmarks.attack import crowds
from octopis.benchmarks.attack.raw import Met, RawClient, SentAwayError, raw_client
from octopis.core.wire.client import (
    Consumed,
    SubscribeRequest,
    UnsubscribeRequest,
    encode_publish,
    encode_request,
)
from octopis.core.wire.frames import FRAME_MAX, FrameKind
from octopis.core.wire.published import encode_published

_NICENESS = 10
_PAUSE_S = 0.01


class Field(msgspec.Struct):
    """Where an attack takes place, and how large it is."""

    url: str
    """A broker that has unrelated clients, too."""

    elsewhere: str
    """Another broker."""

    subscriptions: dict[str, str]
    """The filters of the unrelated clients, by the subscriptions' ids."""

    scale: float = 1.0

    def size(self, full: int) -> int:
        """Return how many of what an attack at its full size has `full` of."""
        return max(1, round(full * self.scale))


class Attacker:
    """What an attack needs: its field, the word to begin, and where to count."""

    def __init__(self, field: Field, begin: Callable[[], Awaitable[None]]) -> None:
        self.field = field
        self.begin = begin
        self.met = Met()

    def client(self, name: str) -> AbstractAsyncContextManager[RawClient]:
        """Connect to the broker in question."""
        return raw_client(self.field.url, name, self.met)

    async def subscribe_and_stay(self, name: str, filters: list[str]) -> None:
        """Subscribe from one client, when it is time, and stay."""
        requests = [_subscribe(name, number, each) for number, each in enumerate(filters)]
        await self.begin()
        async with self.client(name) as client:
            await client.ask_all(requests)
            await client.stay()


# Filters


async def filters(attacker: Attacker) -> None:
    """One client with 400 filters of 60 ORed attribute names each."""
    size = attacker.field.size(400)
    wide = [" OR ".join(f"f{n}x{k} = 1" for k in range(60)) for n in range(size)]
    await attacker.subscribe_and_stay("wide", wide)


async def likes(attacker: Attacker) -> None:
    """One client with 500 filters of 150 LIKE terms each."""
    await attacker.subscribe_and_stay("likes", _patterns(attacker.field.size(500)))


async def texts(attacker: Attacker) -> None:
    """One client with 500 filters of 150 LIKE terms, who publishes texts of 65,535 characters."""
    await attacker.begin()
    async with attacker.client("texts") as client:
        patterns = _patterns(attacker.field.size(500))
        await client.ask_all(_subscribe("texts", *each) for each in enumerate(patterns))
        for number in count(1):
            text = _notification("texts", number, {"remark": "x" * 65_535})
            await client.ask_all([encode_publish(number, [text])])


async def churn(attacker: Attacker) -> None:
    """Two clients subscribe and unsubscribe as fast as they can; one link has 20 kB/s."""

    async def one(name: str) -> None:
        requests = [_subscribe(name, number, f"{name} = {number}") for number in range(100)]
        requests += [
            encode_request(UnsubscribeRequest(number, f"{name}/{number}")) for number in range(100)
        ]
        async with attacker.client(name) as client:
            while True:
                await client.ask_all(requests)

    await attacker.begin()
    await _all_until_sent_away(one("churn1"), one("churn2"))


async def snapshot(attacker: Attacker) -> None:
    """100,000 filters of 10 clients; then a neighbour starts anew and must be told them all."""
    ready = asyncio.Event()
    size = attacker.field.size(10_000)
    under_way = 10

    async def one(name: str) -> None:
        nonlocal under_way
        async with attacker.client(name) as client:
            filters = (f"{name} = {number} AND price > {number % 97}" for number in range(size))
            await client.ask_all(_subscribe(name, *each) for each in enumerate(filters))
            under_way -= 1
            if not under_way:
                ready.set()
            await client.stay()

    async def then() -> None:
        await ready.wait()
        await attacker.begin()

    await _all_until_sent_away(*(one(f"many{number}") for number in range(10)), then())


# Memory and queues


async def stalled(attacker: Attacker) -> None:
    """A subscriber to everything reads nothing, and says again and again that it has read 0."""
    everything = _subscribe("stalled", 1, "TRUE")
    flood = [_notification("flood", number, {"flood": number}) for number in range(2_000)]
    await attacker.begin()
    while True:
        with suppress(SentAwayError):
            async with attacker.client("stalled") as client, attacker.client("flood") as other:
                await client.ask_all([everything])
                flooding = asyncio.create_task(
                    other.ask_all((encode_publish(n, flood) for n in range(10)), at_once=1)
                )
                try:
                    while True:
                        await client.send(encode_request(Consumed(0)))
                        await asyncio.sleep(_PAUSE_S)
                finally:
                    flooding.cancel()
                    await asyncio.gather(flooding, return_exceptions=True)
        await asyncio.sleep(_PAUSE_S)


async def frames(attacker: Attacker) -> None:
    """240 connections send a frame of 16 MiB each, but for its end."""
    head = FRAME_MAX.to_bytes(4, "big") + bytes([FrameKind.PUBLISH])
    most = head + bytes(FRAME_MAX - 1_000)

    async def one(number: int) -> None:
        async with attacker.client(f"frame{number}") as client:
            attacker.met.asked += 1
            await client.send_slowly(most)
            attacker.met.accepted += 1
            await client.stay()

    await attacker.begin()
    await _all_until_sent_away(*(one(number) for number in range(attacker.field.size(240))))


async def publish(attacker: Attacker) -> None:
    """PUBLISH frames of 16 MiB with as many as fit; then the largest that brokers promise to take.

    These are 4,096 notifications of 1 MiB in all, and a single one of almost half a frame.
    """
    small = _notification("publish", 1, {})
    fitting = [small] * ((FRAME_MAX - 100) // len(small))
    middling = _notification("publish", 1, {"large": 1}, bytes(2**20 // 4_096 - 60))
    large = _notification("publish", 1, {"large": 1}, bytes(FRAME_MAX // 2 - 100))
    largest = [encode_publish(1, each) for each in (fitting, [middling] * 4_096, [large])]

    async def one() -> None:
        async with attacker.client("publish") as client:
            while True:
                for frame in largest:
                    attacker.met.asked += 1
                    await client.send_slowly(frame)
                    await client.answers(1)

    await attacker.begin()
    while True:
        await _all_until_sent_away(one())
        await asyncio.sleep(_PAUSE_S)


# Names


async def names(attacker: Attacker) -> None:
    """Two clients fight for one client name, and connect again at once."""

    async def one() -> NoReturn:
        while True:
            attacker.met.asked += 1
            with suppress(SentAwayError):
                async with attacker.client("king") as client:
                    attacker.met.accepted += 1
                    await client.stay()

    await attacker.begin()
    await asyncio.gather(one(), one())


async def thief(attacker: Attacker) -> None:
    """A client subscribes under the ids, and with the filters, of subscribers elsewhere."""
    await attacker.begin()
    async with raw_client(attacker.field.elsewhere, "thief", attacker.met) as client:
        for epoch in count(1):
            await client.ask_all(
                encode_request(SubscribeRequest(n, n, name, wanted, "sql", epoch))
                for n, (name, wanted) in enumerate(attacker.field.subscriptions.items())
            )
            await asyncio.sleep(_PAUSE_S)


# Doors


async def handshakes(attacker: Attacker) -> None:
    """2,000 sockets that send one byte of a TLS handshake a second each."""
    await attacker.begin()
    await crowds.slow_handshakes(attacker.field.url, attacker.field.size(2_000), attacker.met)


async def half_open(attacker: Attacker) -> None:
    """A thousand sockets a second that begin a TLS handshake and go no further."""
    await attacker.begin()
    size = attacker.field.size(crowds.WAVE)
    await crowds.waves_of_half_open(attacker.field.url, size, attacker.met)


@dataclass(frozen=True)
class Attack:
    """An attack, and what it needs of the overlay."""

    run: Callable[[Attacker], Awaitable[None]]
    slow_link: bool = False
    restarts: bool = False
    """Whether a broker's process is killed when it begins, which is started anew."""

    is_secured: bool = False
    """Whether the overlay has security."""

    limits: str = ""
    """What it allows, where that is not the default, as in its file."""

    @property
    def what(self) -> str:
        """What the attacker does."""
        return (self.run.__doc__ or "").partition("\n")[0]


ATTACKS = {
    "filters": Attack(filters),
    "likes": Attack(likes),
    "texts": Attack(texts),
    "stalled": Attack(stalled),
    "churn": Attack(churn, slow_link=True),
    "frames": Attack(frames),
    "publish": Attack(publish),
    "names": Attack(names),
    "thief": Attack(thief),
    "snapshot": Attack(snapshot, restarts=True),
    "handshakes": Attack(handshakes, is_secured=True, limits=crowds.OPEN_LIMITS),
    "half-open": Attack(half_open, is_secured=True),
}


def _subscribe(client: str, number: int, wanted: str) -> bytes:
    return encode_request(SubscribeRequest(number, number, f"{client}/{number}", wanted, "sql", 0))


def _patterns(size: int) -> list[str]:
    """Return filters of 150 LIKE terms, as dear as the filter language allows."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [
        " OR ".join(
            f"remark LIKE '%{letters[k % 26]}{letters[k // 26]}{n % 10}%'" for k in range(150)
        )
        for n in range(size)
    ]


def _notification(
    publisher: str, number: int, attributes: dict[str, int | str], payload: bytes = b""
) -> bytes:
    return encode_published({**attributes}, payload, publisher, number, time.time_ns())


async def _all_until_sent_away(*works: Awaitable[None]) -> None:
    """Do several things; one that is sent away is over, and the others go on."""

    async def until_sent_away(work: Awaitable[None]) -> None:
        with suppress(SentAwayError):
            await work

    await asyncio.gather(*map(until_sent_away, works))


async def _attack(attack: Attack, field: Field) -> Met:
    """Attack between two words, or until the one who gives them is gone."""
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    begun = asyncio.Event()

    async def begin() -> None:
        _say(attacker.met)
        await begun.wait()

    attacker = Attacker(field, begin)

    async def work() -> None:
        with suppress(SentAwayError):
            await attack.run(attacker)

    working = asyncio.create_task(work())
    if await orders.readline():
        begun.set()
        await orders.readline()
    working.cancel()
    for failure in await asyncio.gather(working, return_exceptions=True):
        if isinstance(failure, Exception):
            raise failure
    return attacker.met


def main() -> None:
    """Do what the command line names."""
    os.nice(_NICENESS)
    crowds.may_open_many()
    attack = ATTACKS[sys.argv[1]]
    _say(uvloop.run(_attack(attack, msgspec.json.decode(sys.argv[2], type=Field))))


def _say(met: Met) -> None:
    with suppress(OSError):  # whoever wanted to know is gone
        os.write(sys.stdout.fileno(), msgspec.json.encode(met) + b"\n")


if __name__ == "__main__":
    main()
