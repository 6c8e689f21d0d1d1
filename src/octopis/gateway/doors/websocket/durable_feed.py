"""A durable subscription as a WebSocket reads it."""

import asyncio
from typing import Any

import msgspec

from octopis.client.client import Client
from octopis.core.filters import Filter
from octopis.errors import OctopisError
from octopis.gateway.context import Context
from octopis.gateway.doors.events import durable_stream
from octopis.gateway.doors.websocket.messages import Subscribe
from octopis.gateway.members.member import Member
from octopis.gateway.problems import Problem, answered_within, problem_of
from octopis.gateway.readers.feeds import out
from octopis.gateway.readers.reader import BATCH_MAX, KeptBatch, Reader

_encode = msgspec.json.Encoder().encode


class DurableFeed:
    """Brings a socket what a durable subscription has: no faster than it is taken."""

    def __init__(
        self,
        context: Context,
        member: Member,
        reader: Reader,
        said: Subscribe,
        filter_: Filter | None,
    ) -> None:
        assert said.durable is not None
        self._id, self._name, self._start = said.id, said.durable, said.start
        self._filter, self._member, self._reader = filter_, member, reader
        self._context = context
        self._client: Client | None = None
        self._epoch = 0
        self._opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    async def open(self) -> int:
        """Return the subscription's epoch as soon as it is read, or raise why it is not."""
        return await self._opened

    async def close(self) -> None:
        """Read no more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def ack(self, position: int) -> None:
        """Release what the socket is done with."""
        assert self._client is not None, "it is open, or nobody has its id"
        async with answered_within(self._context.limits.answer_s):
            await self._client.ack(self._name, self._epoch, position)

    async def _run(self) -> None:
        try:
            await self._read()
        except (Problem, OctopisError) as failure:
            problem = failure if isinstance(failure, Problem) else problem_of(failure)
            if not self._opened.done():
                self._opened.set_exception(problem)
            else:
                self._reader.end(problem.document.detail)

    async def _read(self) -> None:
        start: Any = self._start
        async with self._member.at_home(self._name, makes=self._filter) as client:
            self._client = client
            async with durable_stream(
                self._context, client, self._name, self._filter, start, self._reader, self._id
            ) as stream:
                self._epoch = stream.epoch
                self._opened.set_result(stream.epoch)
                while True:
                    found = list(map(out, await stream.fetch()))
                    for first in range(0, len(found), BATCH_MAX):
                        part = found[first : first + BATCH_MAX]
                        batch = KeptBatch(part, list(map(_encode, part)))
                        self._reader.push(self._id, batch)
                        await batch.taken.wait()
                    stream.position = found[-1].position
