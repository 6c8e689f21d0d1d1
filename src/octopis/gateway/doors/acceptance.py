"""Publishing at the overlay, and what a client hears where that goes wrong.

Brokers accept a request whole or not at all. Where notifications that make more than one have one
answer, the next request goes when the last is accepted: so those before a refused one are accepted,
none behind it is, and whoever goes on there publishes nothing twice.
"""

import asyncio
from collections.abc import Iterator, Sequence

from octopis.client.client import Client
from octopis.client.publishing import CHUNK_BYTES
from octopis.core.model import Notification
from octopis.core.wire.frames import encode
from octopis.core.wire.published import PUBLISH_MAX
from octopis.errors import ConnectionLost, LoginFailed, OctopisError
from octopis.gateway.problems import Problem, away, problem_of
from octopis.gateway.settings import GatewayLimits

_OVERHEAD = 32
"""Bytes of a notification on the wire beside its attributes, payload and publisher, at most."""


class Together:
    """Notifications that the client sends in one request: it cuts by the same bounds."""

    def __init__(self, client: Client, more: int = 0) -> None:
        self.notifications: list[Notification] = []
        self._size = 0
        self._overhead = _OVERHEAD + len(client.id.encode()) + more

    @property
    def is_full(self) -> bool:
        """Whether the next one goes in another request."""
        return self._size >= CHUNK_BYTES or len(self.notifications) >= PUBLISH_MAX

    def add(self, notification: Notification) -> None:
        """Take one in."""
        self.notifications.append(notification)
        self._size += len(encode(notification.attributes)) + len(notification.payload)
        self._size += self._overhead


def together(client: Client, found: Sequence[Notification]) -> Iterator[int]:
    """Yield how many go in one request, and in the next."""
    request = Together(client)
    for each in found:
        request.add(each)
        if request.is_full:
            yield len(request.notifications)
            request = Together(client)
    if request.notifications:
        yield len(request.notifications)


async def all_accepted(
    client: Client, found: Sequence[Notification], limits: GatewayLimits
) -> None:
    """Return when the overlay has accepted all, or raise Problem, which says how many it has."""
    if len(found) == 1:
        await accepted(client, found, limits)
        return
    done = 0
    for count in together(client, found):
        try:
            await accepted(client, found[done : done + count], limits)
        except Problem as problem:
            about = problem.document
            about.accepted = done
            if count < len(found):
                last = done + count - 1
                about.detail = f"notifications {done:,} to {last:,}, from 0: {about.detail}"
            raise
        done += count


async def accepted(client: Client, found: Sequence[Notification], limits: GatewayLimits) -> None:
    """Return when the overlay has accepted what goes together, or raise Problem."""
    try:
        async with asyncio.timeout(limits.answer_s):
            if len(found) == 1:
                await client.publish(found[0])
            else:
                await client.publish_many(found)
    except TimeoutError:
        raise away(
            f"it has not answered within {limits.answer_s:g} s, and what was sent may or may not "
            "have been delivered"
        ) from None
    except LoginFailed as failure:
        raise problem_of(failure) from failure
    except ConnectionLost as failure:
        raise away(str(failure)) from failure
    except OctopisError as failure:
        raise problem_of(failure) from failure
