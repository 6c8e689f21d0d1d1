"""Asks every broker of an overlay the same question, over the wire."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from octopis.client.client import Client
from octopis.client.credentials import Given
from octopis.errors import OctopisError, OperationFailed

_Answer = TypeVar("_Answer")
AT_ONCE = 16
CONNECT_S = 3.0


async def ask_each(  # noqa: PLR0913 - what a client is told
    addresses: Mapping[str, str],
    question: Callable[[Client], Awaitable[_Answer]],
    *,
    connect_s: float = CONNECT_S,
    observer: bool = False,
    credentials: Given = None,
    room: asyncio.Semaphore | None = None,
) -> dict[str, _Answer | OctopisError]:
    """Return what each broker answers, or why it does not. `addresses` are by broker.

    `room` bounds the connections at a time of all who ask with it.
    """
    room = room or asyncio.Semaphore(AT_ONCE)

    async def ask(address: str) -> _Answer | OctopisError:
        place = f"octopis://{address}"
        options: dict[str, Any] = {"connect_s": connect_s, "credentials": credentials}
        client = Client(place, reconnect_s=0, observer=observer, **options)
        async with room:
            try:
                async with asyncio.timeout(2 * connect_s), client:
                    return await question(client)
            except OctopisError as failure:
                return failure
            except TimeoutError:
                return OperationFailed(f"no answer from {place}")

    found = await asyncio.gather(*(ask(address) for address in addresses.values()))
    return dict(zip(addresses, found, strict=True))


def no_answer(reasons: Mapping[str, str]) -> OperationFailed:
    """Return what to raise for brokers that have not answered, with the reason of the first."""
    first, reason = next(iter(reasons.items()))
    return OperationFailed(f"no answer from {' '.join(reasons)}; {first}: {reason}")
