"""Durable subscriptions, as programs use them: kept while nobody is there, read by position."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from octopis.client.asking import AskingClient
from octopis.client.streams import Gap, Received
from octopis.core.delivery.lasting.records import Policy
from octopis.core.wire.durable import (
    READ_MAX,
    AckDurable,
    DropDurable,
    DurableAnswer,
    DurableBatch,
    DurableInfo,
    ListDurables,
    OpenDurable,
    ReadDurable,
    encode_durable_request,
)
from octopis.errors import ConnectionLost, InvalidConfiguration, InvalidSubscription, NotOpen

if TYPE_CHECKING:
    from octopis.core.filters import Filter

Start = Literal["new", "earliest"] | int | None

_WAIT_S = 20.0
_ACK_EVERY = 1_000
_ACK_S = 0.2
"""What is acknowledged automatically is said so often: after so many, and after so long."""

_log = logging.getLogger(__name__)


class Batch(msgspec.Struct, frozen=True):
    """What was read of a durable subscription, each notification with its `position`.

    Before the first of them `missing` were dropped at the quota, or are damaged. `end` is the last
    position that there was. `epoch` is another one where the subscription was made anew.
    """

    notifications: list[Received]
    missing: int
    end: int
    epoch: int


class DurableClient(AskingClient):
    """What a client does with durable subscriptions."""

    has_secret = False
    """Whether they can be for this client alone; else they are for all who know their names."""

    async def read(
        self, durable: str, after_position: int, max_count: int = READ_MAX, *, wait_s: float = 0.0
    ) -> Batch:
        """Return what a durable subscription has after a position, at most so many.

        Reading changes nothing: whoever reads the same again, before it is acknowledged, gets the
        same. Where there is nothing yet, it waits for `wait_s` seconds. Raises InvalidSubscription
        where there is no such subscription, or no such position.
        """
        count = min(max(1, max_count), READ_MAX)
        found = await self.ask_durable(
            ReadDurable, durable, after_position, count, round(wait_s * 1000), not self.has_secret
        )
        assert isinstance(found, DurableBatch)
        return batch_of(found, durable)

    async def ack(self, durable: str, epoch: int, position: int) -> None:
        """Release all that a durable subscription has up to a position, for good."""
        await self.ask_durable(AckDurable, durable, epoch, position, not self.has_secret)

    async def durables(self) -> list[DurableInfo]:
        """Return the durable subscriptions that live at the broker of this client."""
        found = await self.ask_durable(ListDurables)
        assert isinstance(found, DurableAnswer)
        return found.durables

    async def drop_durable(self, name: str) -> None:
        """End a durable subscription, with all that is kept for it."""
        await self.ask_durable(DropDurable, name, not self.has_secret)

    async def open_durable(
        self, name: str, filter_: "Filter | None" = None, policy: Policy | None = None
    ) -> DurableInfo:
        """Return a durable subscription of this name, made now unless it is there."""
        text = None if filter_ is None else str(filter_)
        about = name, text, "sql", policy, not self.has_secret
        found = await self.ask_durable(OpenDurable, *about)
        assert isinstance(found, DurableAnswer)
        return found.durables[0]

    async def ask_durable(self, request: type[Any], *facts: object) -> object:
        """Ask the broker something, and return what it answers."""
        connection = await self._open_connection()
        return await connection.ask(lambda number: encode_durable_request(request(number, *facts)))

    async def tell_durable(self, request: type[Any], *facts: object) -> None:
        """Ask the broker something whose answer nobody waits for."""
        answer = (await self._open_connection()).ask(
            lambda number: encode_durable_request(request(number, *facts))
        )
        answer.add_done_callback(_note)


def _note(answer: "asyncio.Future[object]") -> None:
    if not answer.cancelled() and (failure := answer.exception()) is not None:
        _log.warning("an acknowledgement was not taken: %s", failure)


def batch_of(found: DurableBatch, name: str) -> Batch:
    """Return what was read, as programs get it."""
    names = (name,)
    received = []
    for position, body in ((item.position, item.notification) for item in found.items):
        about = body.attributes, body.payload, body.publisher, body.sequence, body.intended_ns
        received.append(Received(*about, names, position))
    return Batch(received, found.missing, found.end, found.epoch)


def durable_stream(  # noqa: PLR0913 - named options of one stream
    home: DurableClient,
    name: str,
    filters: "Sequence[Filter]",
    *,
    on_gap: Callable[[Gap], None] | None,
    start: Start = None,
    policy: str | None = None,
    acks: Literal["auto", "manual"] = "auto",
) -> "DurableNotifications":
    """Return a stream of a durable subscription. Raises InvalidConfiguration."""
    if len(filters) > 1:
        reason = f"a durable subscription has one filter, not {len(filters)}: join them with OR"
        raise InvalidConfiguration(reason)
    try:
        chosen = None if policy is None else Policy(policy)
    except ValueError:
        known = ", ".join(each.value for each in Policy)
        raise InvalidConfiguration(f"a policy is one of {known}, not {policy!r}") from None
    if acks not in {"auto", "manual"}:
        raise InvalidConfiguration(f"acks is 'auto' or 'manual', not {acks!r}")
    filter_ = filters[0] if filters else None
    return DurableNotifications(
        home, name, filter_, start=start, policy=chosen, acks_itself=acks == "auto", on_gap=on_gap
    )


class DurableNotifications:
    """A stream of what a durable subscription has, from behind the last that was acknowledged.

    Use it as `async with client.subscribe(..., durable="name") as notifications`. Leaving it ends
    the stream, not the subscription: what comes meanwhile is kept. Unless `acks` is "manual", a
    notification is acknowledged when the next one is asked for (or a little later: acknowledgements
    are gathered), and the last one when the stream is left without an error. What is not
    acknowledged comes again.
    """

    def __init__(  # noqa: PLR0913 - named options of one stream
        self,
        home: DurableClient,
        name: str,
        filter_: "Filter | None",
        *,
        start: Start = None,
        policy: Policy | None = None,
        acks_itself: bool = True,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> None:
        self.name = name
        self.position = 0
        """The position of the last notification that was taken."""

        self.acked = 0
        """All up to this position is acknowledged, as far as this stream knows."""

        self.epoch = 0
        self.gaps = 0
        self._home, self._filter, self._start, self._policy = home, filter_, start, policy
        self.acks_itself = acks_itself
        """Whether what was taken is acknowledged when more is taken."""

        self._on_gap = on_gap
        self._buffer: deque[Received | Gap] = deque()
        self._fetched = 0
        self._reading: asyncio.Task[Batch] | None = None
        self._said_at = 0.0
        self._is_open = False

    async def __aenter__(self) -> "DurableNotifications":
        await self.open()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await self.close(ack=kind is None and self.acks_itself)

    async def open(self) -> None:
        """Begin; returns when the broker has the subscription on disk."""
        info = await self._home.open_durable(self.name, self._filter, self._policy)
        self.epoch, self.acked = info.epoch, info.acked
        self.position = self._fetched = self._after(info)
        self._is_open = True

    def _after(self, info: DurableInfo) -> int:
        """Return the position after which to begin."""
        start = self._start
        if start is None or start == "earliest":
            return info.acked
        if start == "new":
            return info.end
        if not isinstance(start, int) or not info.acked < start <= info.end + 1:
            reason = (
                f"{self.name!r} cannot start at {start!r}: its positions are from "
                f"{info.acked + 1:,} to {info.end:,}; or say 'new' or 'earliest'"
            )
            raise InvalidSubscription(reason, self.name)
        return start - 1

    async def close(self, *, ack: bool = False) -> None:
        """End the stream; with `ack`, acknowledge all that was taken."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None
        if self._is_open and ack and self.position > self.acked:
            await self.ack()
        self._is_open = False

    async def ack(self, position: int | None = None) -> None:
        """Acknowledge all up to a position, the last that was taken by default.

        Returns when the broker has that on disk.
        """
        upto = self.position if position is None else position
        await self._home.ack(self.name, self.epoch, upto)
        self.acked = max(self.acked, upto)

    def __aiter__(self) -> "DurableNotifications":
        return self

    async def __anext__(self) -> Received:
        await self._acknowledge_taken()
        while True:
            while self._buffer:
                found = self._pop()
                if found is not None:
                    self.position = found.position
                    return found
            await self._fill()

    async def batches(self) -> AsyncIterator[list[Received]]:
        """Yield what has come since the last time, up to a gap, in one list: for speed."""
        while True:
            await self._acknowledge_taken()
            batch = await self.fetch()
            self.position = batch[-1].position
            yield batch

    async def fetch(self) -> list[Received]:
        """Return what has come since the last time, up to the next gap.

        The caller sets `position` to what it took. Nothing is lost where this is cancelled: the
        next call returns it.
        """
        while True:
            while not self._buffer:
                await self._fill()
            batch: list[Received] = []
            while self._buffer and not (batch and isinstance(self._buffer[0], Gap)):
                found = self._pop()
                if found is not None:
                    batch.append(found)
            if batch:
                return batch

    async def _acknowledge_taken(self) -> None:
        if upto := self.to_acknowledge():
            await self.tell_acked(upto)

    def to_acknowledge(self) -> int:
        """Return up to where to acknowledge what was taken before, or 0 where that can wait.

        Who asks for more is done with what came before.
        """
        if not self.acks_itself or self.position <= self.acked:
            return 0
        now = time.monotonic()
        if self.position - self.acked < _ACK_EVERY and now - self._said_at < _ACK_S:
            return 0
        self.acked, self._said_at = self.position, now
        return self.position

    async def tell_acked(self, upto: int) -> None:
        """Acknowledge all up to a position, without waiting for the disk."""
        shared = not self._home.has_secret
        await self._home.tell_durable(AckDurable, self.name, self.epoch, upto, shared)

    def _pop(self) -> Received | None:
        item = self._buffer.popleft()
        if isinstance(item, Received):
            return item
        self.gaps += 1
        if self._on_gap is not None:
            self._on_gap(item)
        else:
            _log.warning("notifications may be missing: %s", item.reason)
        return None

    async def _fill(self) -> None:
        """Wait for more, and have the next read under way while it is consumed."""
        if not self._is_open:
            raise NotOpen(
                "the stream is not open: use `async with client.subscribe(...) as notifications`"
            )
        reading = self._reading = self._reading or self._read()
        # Whoever waits no longer leaves the read under way: the broker has it, and the next who
        # waits gets what it brings.
        await asyncio.wait([reading])
        self._reading = None
        try:
            batch = reading.result()
        except asyncio.CancelledError:  # it was closed meanwhile
            raise NotOpen(f"the stream of {self.name!r} is closed") from None
        except ConnectionLost as failure:
            _log.debug("%s: reading goes on after a break: %s", self.name, failure)
            return
        if batch.epoch != self.epoch:
            reason = f"the durable subscription {self.name!r} was made anew since"
            raise InvalidSubscription(reason, self.name)
        for each in batch.notifications:
            self._skip_to(each.position)
            self._buffer.append(each)
            self._fetched = each.position
        if not batch.notifications:
            self._skip_to(self._fetched + batch.missing + 1)
        self._reading = self._read()

    def _skip_to(self, position: int) -> None:
        """Tell of positions before this one that are not there."""
        missing = position - self._fetched - 1
        if missing:
            reason = f"{missing:,} notifications of {self.name!r} were dropped or are damaged"
            self._buffer.append(Gap(reason, missing))
            self._fetched += missing

    def _read(self) -> "asyncio.Task[Batch]":
        work = self._home.read(self.name, self._fetched, wait_s=_WAIT_S)
        return asyncio.get_running_loop().create_task(work)
