"""Somebody does something bad to a live broker, while others use it and must not notice."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from octopis.client.client import Client
from octopis.core.model import BrokerId
from octopis.core.wire.client import (
    decode_to_client,
)
from octopis.core.wire.control import Goodbye, Refusal
from octopis.core.wire.frames import Frame
from octopis.core.wire.greeting import (
    decode_answer,
)
from octopis.core.wire.link import overlay_digest
from support.live import (
    LIMITS,
    client_of,
    line,
    overlay,
    ready,
    run_live,
    tables_hold,
)

SCOT = line(2, 2)
A0, A1, B0, B1 = SCOT.brokers
DIGEST = overlay_digest(SCOT)
IMPATIENT = replace(LIMITS, hello_s=0.3, silence_s=0.6, keepalive_s=0.2, client_silence_s=0.6)


def with_witness(
    bad: Callable[[LiveBroker], Awaitable[object]], broker: BrokerId = B0, **options: object
) -> None:
    """Do something bad to a broker, while a publisher and a subscriber use it, before and after."""

    async def work() -> None:
        async with (
            ready(overlay(SCOT, **options)) as live,
            client_of(live[A0]) as writer,
            client_of(live[broker]) as reader,
            reader.subscribe("x > 0") as notifications,
        ):
            await tables_hold(live, 1)
            await still_works(writer, notifications, 1)
            await bad(live[broker])
            await still_works(writer, notifications, 2)
            assert all(link.is_up for each in live.values() for link in each.links.values())
            assert notifications.gaps == 0

    run_live(work())


async def still_works(writer: Client, notifications, number: int) -> None:
    await writer.publish({"x": number})
    async with asyncio.timeout(5):
        assert (await anext(notifications)).attributes == {"x": number}


def refusal_in(frames: list[Frame]) -> str:
    """Return why a broker did not take somebody in."""
    (answer,) = [decode_answer(frame) for frame in frames]
    assert isinstance(answer, Refusal)
    return answer.message


def goodbye_in(frames: list[Frame]) -> str:
    """Return why a broker has closed the connection of a client."""
    said = [decode_to_client(frame) for frame in frames]
    (goodbye,) = [each for each in said if isinstance(each, Goodbye)]
    return goodbye.reason
