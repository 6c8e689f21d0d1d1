"""Moving a durable subscription to another broker, whatever is published meanwhile.

Why nothing is lost or comes twice is said in octopis.core.delivery.lasting.moving. Each step may be
the last one of a run: the next run goes on from what the brokers have.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from octopis.client.durable import DurableClient
from octopis.core.delivery.lasting.records import Policy
from octopis.core.wire.durable import DropDurable, DurableInfo
from octopis.core.wire.moving import (
    BeginDurable,
    CopyDurable,
    Excerpts,
    FinishDurable,
    ForgetDurable,
    JoinDurable,
    LeaveDurable,
    Left,
    Merged,
    Passage,
    PassDurable,
    TakeDurable,
)
from octopis.errors import ConnectionFailed, InvalidSubscription, OperationFailed

TIMEOUT_S = 30.0
_POLL_S = 0.02


class Stage(Enum):
    """How far a move is."""

    KNOWN = "every broker knows where it lives"
    JOINED = "the other broker keeps what comes"
    SENT = "every broker sends to both"
    ARRIVED = "all that was sent before has arrived"
    LEFT = "it has left"
    COPIED = "what it had is copied"
    MERGED = "what came meanwhile follows"
    MOVED = "it has moved"


class Progress(NamedTuple):
    """What was done last; of what is many, so many of how many."""

    stage: Stage
    done: int = 1
    total: int = 1


class _Places(NamedTuple):
    """Where it comes from, what is there, and what is at the other broker so far."""

    source: str
    there: DurableInfo
    here: DurableInfo | None


class Move:
    """A move of a durable subscription to the broker `to`, with a client of every broker.

    `clients` are by their brokers' names (`a,0`): all brokers of the overlay, as each may have
    something under way. They have the secret of the subscription's owner.
    """

    def __init__(
        self,
        clients: Mapping[str, DurableClient],
        name: str,
        to: str,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        if to not in clients:
            raise InvalidSubscription(f"there is no broker {to}: {', '.join(clients)}", name)
        self._clients = clients
        self._name = name
        self._to = to
        self._timeout_s = timeout_s

    async def run(self) -> AsyncIterator[Progress]:
        """Move it, step by step; whoever stops in between can run it again.

        Raises InvalidSubscription where it cannot move so, and OperationFailed where a broker does
        not answer within the time: before it has left, nothing is changed for who reads it.
        """
        places = await self._places()
        if places is None:
            yield Progress(Stage.MOVED)
            return
        source, there, here = places
        if not there.moved_to:
            await self._known(source, there.moves, source)
            yield Progress(Stage.KNOWN)
            await self._join(source, there)
            yield Progress(Stage.JOINED)
            lasts = await self._known(self._to, there.moves + 1, source)
            yield Progress(Stage.SENT)
            await self._arrived(lasts, source, there.moves + 1)
            yield Progress(Stage.ARRIVED)
        if here is None or here.joins:
            left = await self._ask(source, LeaveDurable, self._to, there.moves + 1)
            assert isinstance(left, Left)
            yield Progress(Stage.LEFT)
            async for each in self._copy(source, left):
                yield each
            async for each in self._merge():
                yield each
        await self._ask(source, ForgetDurable, self._to)
        yield Progress(Stage.MOVED)

    async def abort(self) -> None:
        """Take away what the other broker has, where it has not left the first one yet."""
        halves = await self._halves()
        here = halves.get(self._to)
        if here is None or not here.joins:
            raise InvalidSubscription(f"{self._name!r} is not on its way to {self._to}", self._name)
        left = [broker for broker, each in halves.items() if each.moved_to == self._to]
        if left:
            reason = (
                f"{self._name!r} has left {left[0]}: only {self._to} has what has come since. Run "
                "the move to its end, then move it back"
            )
            raise InvalidSubscription(reason, self._name)
        await self._ask(self._to, DropDurable)

    # What there is

    async def _halves(self) -> dict[str, DurableInfo]:
        """Return what each broker has of it; all have to answer."""
        found: dict[str, DurableInfo] = {}
        silent = set(self._clients)

        async def look(broker: str) -> None:
            for each in await self._clients[broker].durables():
                if each.name == self._name:
                    found[broker] = each
            silent.discard(broker)

        await self._all(look, silent, "does not answer")
        return found

    async def _places(self) -> _Places | None:
        """Return where it is; None where it has moved, and nothing was left to do."""
        halves, name, to = await self._halves(), self._name, self._to
        lives = [b for b, each in halves.items() if not each.moved_to and not each.joins]
        moved = [b for b, each in halves.items() if each.moved_to]
        if len(lives) > 1:
            raise InvalidSubscription(f"{name!r} lives at {' and at '.join(lives)}", name)
        if lives == [to] and not any(halves[each].moved_to == to for each in moved):
            raise InvalidSubscription(f"the durable subscription {name!r} lives at {to}", name)
        for each in moved if lives else ():  # a run before has ended without the last step
            await self._ask(each, ForgetDurable, halves[each].moved_to)
        if lives == [to]:
            return None
        others = [b for b, each in halves.items() if each.joins and b != to]
        others += [halves[each].moved_to for each in moved if not lives]
        if any(each != to for each in others):
            reason = (
                f"{name!r} is on its way to {others[0]}: run octopis durable move {name} --to "
                f"{others[0]} to its end, or with --abort"
            )
            raise InvalidSubscription(reason, name)
        source = (lives or moved or [""])[0]
        here = halves.get(to)
        if not source or (moved and not lives and here is None):
            reason = f"there is no durable subscription {name!r} at any broker"
            if moved:
                reason = f"{name!r} has left {source} for {to}, where it was dropped since"
            raise InvalidSubscription(reason, name)
        return _Places(source, halves[source], here)

    # Steps

    async def _join(self, source: str, there: DurableInfo) -> None:
        if there.suspended:
            reason = f"{self._name!r} is suspended: it can move when all it has is acknowledged"
            raise InvalidSubscription(reason, self._name)
        about = source, Policy(there.policy), there.epoch, there.moves + 1
        await self._ask(self._to, JoinDurable, *about, there.created_ns, there.filter)

    async def _known(self, holder: str, moves: int, source: str) -> dict[str, int]:
        """Wait until all know on disk who has it; return the last number of each to `source`."""
        own = await self._pass(holder, moves, holder, source, (0, 0))
        lasts: dict[str, int] = {}
        silent = set(self._clients)

        async def know(broker: str) -> None:
            while True:
                found = await self._pass(broker, moves, holder, source, own.version)
                if found.knows and found.reached:
                    lasts[broker] = found.last
                    silent.discard(broker)
                    return
                await asyncio.sleep(_POLL_S)

        await self._all(know, silent, f"does not know that {self._name!r} is at {holder}")
        return lasts

    async def _arrived(self, lasts: dict[str, int], source: str, moves: int) -> None:
        """Wait until `source` has what was numbered for it up to then; what was lost never was."""
        silent = set(self._clients)

        async def arrive(broker: str) -> None:
            while True:
                found = await self._pass(broker, moves, self._to, source, (0, 0))
                if found.acked >= min(found.last, lasts[broker]):
                    silent.discard(broker)
                    return
                await asyncio.sleep(_POLL_S)

        await self._all(arrive, silent, f"has something for {source} that has not arrived")

    async def _pass(
        self, broker: str, moves: int, holder: str, toward: str, version: tuple[int, int]
    ) -> Passage:
        about = self._name, moves, holder, toward, version
        found = await self._clients[broker].ask_durable(PassDurable, *about)
        assert isinstance(found, Passage)
        return found

    async def _copy(self, source: str, left: Left) -> AsyncIterator[Progress]:
        about = left.acked, left.until, left.dropped, left.policy, left.cut
        await self._ask(self._to, BeginDurable, *about)
        (here,) = [each for each in await self._clients[self._to].durables() if self._is(each)]
        total = left.until - left.acked
        after = max(here.end, left.acked)
        while after < left.until:
            found = await self._ask(source, CopyDurable, after)
            assert isinstance(found, Excerpts)
            await self._ask(self._to, TakeDurable, found.positions, found.bodies, found.upto)
            after = found.upto
            yield Progress(Stage.COPIED, after - left.acked, total)

    def _is(self, info: DurableInfo) -> bool:
        return info.name == self._name

    async def _merge(self) -> AsyncIterator[Progress]:
        done = 0
        while True:
            found = await self._ask(self._to, FinishDurable)
            assert isinstance(found, Merged)
            done += 1
            yield Progress(Stage.MERGED, done, done + bool(found.left))
            if not found.left:
                return

    async def _ask(self, broker: str, request: type[Any], *facts: object) -> object:
        client = self._clients[broker]
        return await client.ask_durable(request, self._name, *facts, not client.has_secret)

    async def _all(self, ask: Any, silent: set[str], what: str) -> None:
        """Ask all brokers, again where a connection breaks, until `silent` is empty."""

        async def insist(broker: str) -> None:
            while broker in silent:
                try:
                    await ask(broker)
                except ConnectionFailed:
                    await asyncio.sleep(_POLL_S)

        tasks = [asyncio.create_task(insist(broker)) for broker in self._clients]
        try:
            async with asyncio.timeout(self._timeout_s):
                await asyncio.gather(*tasks)
        except TimeoutError:
            names = ", ".join(sorted(silent))
            raise OperationFailed(
                f"{names} {what}, and {self._timeout_s:g} s are over: all stays as it is. Run the "
                "command again when all brokers are there, or with --abort"
            ) from None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
