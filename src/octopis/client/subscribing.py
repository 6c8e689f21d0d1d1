"""A client's requests to subscribe and unsubscribe, with the number of its moves.

A client that connects to another broker moves its subscriptions there. Each move has a number, so
that old news never replaces newer; where the broker knows of a later one (of this client, which has
forgotten it), the client takes the number after that.

A session that goes on over another connection has the subscriptions that it had. Those that were to
end meanwhile are ended then.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from octopis.client.connection import ClientConnection
from octopis.client.streams import Notifications
from octopis.core.wire.client import SubscribeRequest, UnsubscribeRequest, encode_request
from octopis.errors import (
    ConnectionLost,
    InvalidConfiguration,
    InvalidSubscription,
    OctopisError,
)

if TYPE_CHECKING:
    from octopis.core.filters import Filter

_REQUESTS_AT_ONCE = 1_000


def numbered(
    asked: Sequence["Filter"], names: Sequence[str] | None, numbers: Iterator[int], client: str
) -> dict[int, tuple[str, "Filter"]]:
    """Return filters with ids by numbers for deliveries; ids are the `names`, or the client's.

    Raises InvalidConfiguration where the names do not fit.
    """
    found = {next(numbers): each for each in asked}
    ids = [f"{client}/{number}" for number in found] if names is None else list(names)
    if len(set(ids)) != len(asked):
        reason = f"names are one for each filter, all different: {len(asked)}, not {ids}"
        raise InvalidConfiguration(reason)
    return dict(zip(found, zip(ids, asked, strict=True), strict=True))


class Subscribing:
    """Subscribes streams, over whatever connection there is."""

    def __init__(self) -> None:
        self._moves = 0
        self._ending: dict[str, None] = {}

    def moved(self) -> None:
        """Note that a session has begun, at another broker or at the same."""
        self._moves += 1
        self._ending.clear()

    async def resumed(self, connection: ClientConnection) -> None:
        """End what was to end while there was no connection."""
        await self._end(list(self._ending), connection)

    async def subscribe(self, stream: Notifications, connection: ClientConnection) -> None:
        """Subscribe a stream's filters, or raise why one of them was refused."""
        names = list(stream.names.items())
        for start in range(0, len(names), _REQUESTS_AT_ONCE):
            part = names[start : start + _REQUESTS_AT_ONCE]
            refused = await self._ask_for(part, stream, connection)
            if refused:  # this client had them before, elsewhere: here it is now
                last = max(refusal.epoch or 0 for refusal in refused.values())
                self._moves = max(self._moves, last) + 1
                for refusal in (await self._ask_for(list(refused), stream, connection)).values():
                    raise refusal

    async def resubscribe(self, stream: Notifications, connection: ClientConnection) -> None:
        """Subscribe a stream's filters anew; one that is refused this time ends its stream."""
        try:
            await self.subscribe(stream, connection)
        except ConnectionLost:
            raise
        except OctopisError as failure:
            stream.end(failure)

    async def unsubscribe(self, stream: Notifications, connection: ClientConnection | None) -> None:
        """Take a stream's filters back, now or when the session goes on."""
        names = list(stream.names.values())
        self._ending |= dict.fromkeys(names)
        if connection is not None and connection.is_open:
            await self._end(names, connection)

    async def _end(self, names: list[str], connection: ClientConnection) -> None:
        answers = [connection.ask(_unsubscribe_frame(name)) for name in names]
        found = await asyncio.gather(*answers, return_exceptions=True)
        for name, answer in zip(names, found, strict=True):
            if not isinstance(answer, ConnectionLost):  # refused is what was never accepted
                self._ending.pop(name, None)

    async def _ask_for(
        self, names: list[tuple[int, str]], stream: Notifications, connection: ClientConnection
    ) -> dict[tuple[int, str], InvalidSubscription]:
        """Subscribe; return what was refused because of a later move. Raises all other refusals."""
        answers = [
            connection.ask(_subscribe_frame(number, name, stream.subscriptions[name], self._moves))
            for number, name in names
        ]
        refused = {}
        for each, found in zip(
            names, await asyncio.gather(*answers, return_exceptions=True), strict=True
        ):
            if isinstance(found, InvalidSubscription) and found.epoch is not None:
                refused[each] = found
            elif isinstance(found, BaseException):
                raise found
        return refused


def _subscribe_frame(
    number: int, name: str, filter_: "Filter", epoch: int
) -> Callable[[int], bytes]:
    return lambda request: encode_request(
        SubscribeRequest(request, number, name, str(filter_), "sql", epoch)
    )


def _unsubscribe_frame(name: str) -> Callable[[int], bytes]:
    return lambda request: encode_request(UnsubscribeRequest(request, name))
