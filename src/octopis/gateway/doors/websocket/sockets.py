"""`/ws`: publish and subscribe over one WebSocket, with many filters, acks and flow control.

Each frame holds one message or an array of them; the gateway sends arrays. A message is a JSON
object whose `type` says what it is; docs/gateway.md has the list.
"""

import asyncio
import contextlib
from collections import deque
from itertools import chain
from typing import Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from octopis.client.client import Client
from octopis.core.filters import Filter, parse_filter
from octopis.core.model import Notification
from octopis.errors import OctopisError
from octopis.gateway.context import Context
from octopis.gateway.doors.acceptance import accepted, together
from octopis.gateway.doors.notations import checked
from octopis.gateway.doors.websocket.durable_feed import DurableFeed
from octopis.gateway.doors.websocket.frames import framed, messages_of
from octopis.gateway.doors.websocket.introduction import said_token
from octopis.gateway.doors.websocket.messages import (
    Ack,
    Credit,
    Publish,
    Said,
    Subscribe,
    Unsubscribe,
    read_messages,
)
from octopis.gateway.members.member import Member
from octopis.gateway.problems import Problem, answered_within, problem_of
from octopis.gateway.readers.reader import Batch, Item, Reader
from octopis.gateway.security import token_of

DOOR = "websocket"
_AT_ONCE = 4
"""Groups of publications that are under way; then nothing more is read of the socket."""

_ANSWERS_MAX = 1_000
_CLOSED_BY_US = 1001
_REFUSED = 1008
_REASON_BYTES = 120
_encode = msgspec.json.Encoder().encode
_Publication = tuple[Notification, int | str | None]
"""With the request that is answered."""


async def serve(context: Context, websocket: WebSocket) -> None:
    """Serve a socket until it is closed."""
    token = ""
    is_accepted = False
    try:
        if context.is_secure and not token_of(websocket.scope):
            await websocket.accept()
            is_accepted = True
            token = await said_token(context, websocket)
        with context.reader(DOOR) as reader:
            async with context.member(websocket.scope, reader, token) as member:
                await member.connected()
                if not is_accepted:
                    await websocket.accept()
                    is_accepted = True
                await Socket(context, websocket, member, reader).run()
    except WebSocketDisconnect:
        return  # before it has said who it is
    except Problem as problem:
        if not is_accepted:  # this is an answer to the HTTP request
            await websocket.send_denial_response(problem.response())
            return
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
            about = {**msgspec.to_builtins(problem.document), "type": "error"}
            await websocket.send_text(_encode([about]).decode())
            await websocket.close(_REFUSED, _short(problem.document.detail))


class Socket:
    """One WebSocket: what it has subscribed to, and what waits for it."""

    def __init__(
        self, context: Context, websocket: WebSocket, member: Member, reader: Reader
    ) -> None:
        self._context, self._websocket = context, websocket
        self._member, self._reader = member, reader
        self._filters: dict[str, Filter] = {}
        self._durables: dict[str, DurableFeed] = {}
        self._credit: int | None = None
        self._answers: deque[bytes] = deque()
        self._flushed = asyncio.Event()
        self._publishing: deque[asyncio.Task[None]] = deque()

    async def run(self) -> None:
        """Serve until one side has enough."""
        sending = asyncio.create_task(self._send())
        hearing = asyncio.create_task(self._hear())
        try:
            await asyncio.wait([sending, hearing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, hearing, *self._publishing):
                task.cancel()
            ended = await asyncio.gather(
                sending, hearing, *self._publishing, return_exceptions=True
            )
            for id_ in list(self._filters):
                self._leave(id_)
            for each in self._durables.values():
                await each.close()
        for failure in ended:
            if isinstance(failure, Exception) and not isinstance(failure, WebSocketDisconnect):
                raise failure
        if self._reader.ending:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
                await self._websocket.close(_CLOSED_BY_US, _short(self._reader.ending))

    # What it says

    async def _hear(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text") or message.get("bytes") or b""
            said = read_messages(text.encode() if isinstance(text, str) else text)
            # Who says too much is heard more slowly: were it told so, it might say all again.
            if await self._context.rates.wait(self._websocket.scope, max(1, len(said))):
                self._context.counts.ended["rate_per_s"] += 1
            await self._obey(said)
            while len(self._answers) > _ANSWERS_MAX:
                self._flushed.clear()
                await self._flushed.wait()

    async def _obey(self, messages: "list[Said | Problem]") -> None:
        publications: list[_Publication] = []
        for index, said in enumerate(messages):
            request = said.request if isinstance(said, Publish) else getattr(said, "id", None)
            try:
                if isinstance(said, Publish):
                    found = checked(said.attributes, said.payload)
                    publications.append((found, said.request))
                    continue
                await self._publish(publications)
                publications = []
                await self._do(said)
            except (Problem, OctopisError) as failure:
                problem = failure if isinstance(failure, Problem) else problem_of(failure)
                problem.document.index = index
                self._say_problem(problem, request)
        await self._publish(publications)

    async def _do(self, said: "Said | Problem") -> None:
        if isinstance(said, Problem):
            raise said
        if isinstance(said, Subscribe):
            await self._subscribe(said)
        elif isinstance(said, Unsubscribe):
            if said.id in self._durables:
                await self._durables.pop(said.id).close()
            elif said.id in self._filters:
                self._leave(said.id)
            else:
                raise Problem(400, f"there is no subscription {said.id!r} on this socket")
            self._reader.forget(said.id)
            self._say({"type": "unsubscribed", "id": said.id})
        elif isinstance(said, Ack):
            if said.id not in self._durables:
                raise Problem(400, f"there is no durable subscription {said.id!r} on this socket")
            await self._durables[said.id].ack(said.position)
        elif isinstance(said, Credit):
            if said.count < 0:
                raise Problem(400, f"a credit is not below 0: {said.count}")
            self._credit = (self._credit or 0) + said.count
            self._reader.wake()

    async def _subscribe(self, said: Subscribe) -> None:
        most = self._context.limits.filters_per_socket
        if said.id in self._filters or said.id in self._durables:
            raise Problem(400, f"there is a subscription {said.id!r} on this socket already")
        if len(self._filters) + len(self._durables) >= most:
            raise Problem(400, f"a socket has at most {most} subscriptions: open another")
        filter_ = None if said.filter is None else parse_filter(said.filter, said.dialect)
        answer = {"type": "subscribed", "id": said.id}
        if said.durable is not None:
            feed = DurableFeed(self._context, self._member, self._reader, said, filter_)
            epoch = await feed.open()
            self._durables[said.id] = feed
            self._say({**answer, "durable": said.durable, "epoch": str(epoch)})
            return
        if filter_ is None:
            raise Problem(400, "say what to subscribe to: a filter")
        async with answered_within(self._context.limits.answer_s):
            await self._member.feeds.join(filter_, (self._reader, said.id))
        self._filters[said.id] = filter_
        self._say({**answer, "filter": str(filter_)})

    def _leave(self, id_: str) -> None:
        self._member.feeds.leave(self._filters.pop(id_), (self._reader, id_))

    async def _publish(self, found: list[_Publication]) -> None:
        """Publish what stood together, in order; wait where too much is under way."""
        for count in together(self._member.client, [each for each, _ in found]):
            group, found = found[:count], found[count:]
            while len(self._publishing) >= _AT_ONCE:
                await asyncio.wait([self._publishing[0]])
                self._publishing.popleft()
            self._publishing.append(asyncio.create_task(self._publish_group(group)))
            await asyncio.sleep(0)  # it begins now, so that all goes in order

    async def _publish_group(self, found: list[_Publication]) -> None:
        """Publish what the overlay accepts or refuses as a whole, and answer so."""
        requests = [request for _, request in found if request is not None]
        try:
            client: Client = await self._member.connected()
            await accepted(client, [each for each, _ in found], self._context.limits)
        except Problem as problem:
            for request in requests:
                self._say_problem(problem, request)
            if not requests:
                self._say_problem(problem)
        else:
            self._context.counts.published[DOOR] += len(found)
            if requests:
                self._say({"type": "accepted", "count": len(found), "requests": requests})

    # What it hears

    def _say(self, message: dict[str, Any]) -> None:
        self._answers.append(_encode(message))
        self._reader.wake()

    def _say_problem(self, problem: Problem, request: object = None) -> None:
        about = {} if request is None else {"request": request}
        self._say({**msgspec.to_builtins(problem.document), "type": "error", **about})

    async def _send(self) -> None:
        reader = self._reader
        while not reader.ending:
            answers = list(self._answers)
            self._answers.clear()
            self._flushed.set()
            found = reader.take(self._credit) if self._credit != 0 else []
            if self._credit is not None:
                self._credit -= sum(item.count for _, item in found if isinstance(item, Batch))
            if answers or found:
                await self._send_all(answers, found)
            elif self._credit == 0:
                await reader.woken()
            else:
                await reader.more()

    async def _send_all(self, answers: list[bytes], found: list[Item]) -> None:
        for frame in framed(chain(answers, messages_of(found))):
            if self._reader.ending:
                return
            await self._websocket.send_text(frame.decode())
        self._context.counts.delivered[DOOR] += sum(
            item.count for _, item in found if isinstance(item, Batch)
        )


def _short(reason: str) -> str:
    """Return as much of a reason as may stand in a frame that closes: bytes, not letters."""
    return reason.encode()[:_REASON_BYTES].decode(errors="ignore")
