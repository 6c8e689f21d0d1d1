"""The client's end of one connection: requests with their answers, and what is delivered."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, cast

from octopis.core.wire.client import (
    AnswerItem,
    Delivery,
    GapNotice,
    LostNotice,
    decode_to_client,
)
from octopis.core.wire.control import Goodbye, Ping, Pong, Refusal, Status, encode_control
from octopis.core.wire.frames import Frame, FrameDecoder
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.errors import ConnectionFailed, ConnectionLost, OctopisError, ProtocolError


class Receiver(Protocol):
    """Who takes what a broker sends of its own accord."""

    def delivered(self, deliveries: list[Delivery]) -> None:
        """Take deliveries in."""

    def gap(self, dropped: int) -> None:
        """Deliveries were dropped, because this client was too slow."""

    def lost(self, number: int, reason: str) -> None:
        """A subscription is another connection's now."""


class ClientConnection(asyncio.Protocol):
    """One connection to a broker, until it is lost."""

    def __init__(self, hello: ClientHello, receiver: Receiver) -> None:
        self._hello = hello
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._frames = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._pending: dict[int, tuple[asyncio.Future[Any], int]] = {}
        self._request = 0
        self._reason = ""
        self._welcomed = False
        self.heard_at = self._loop.time()
        self.welcome: asyncio.Future[Welcome] = self._loop.create_future()
        self.lost: asyncio.Future[str] = self._loop.create_future()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello."""
        transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self._transport = transport
        transport.write(encode_hello(self._hello))

    def data_received(self, data: bytes) -> None:
        """Take in what the broker says."""
        try:
            for frame in self._frames.receive_data(data):
                self._take(frame)
        except ProtocolError as failure:
            self.close(f"what came from the broker makes no sense: {failure}")
        self.heard_at = self._loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail whatever waits for an answer."""
        reason = self._reason or (str(exc) if exc else "the broker has closed the connection")
        self._reason = reason
        if not self.welcome.done():
            self.welcome.set_exception(ConnectionFailed(reason))
        for answer, publications in self._pending.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(reason, publications))
        self._pending.clear()
        if not self.lost.done():
            self.lost.set_result(reason)

    # What the client calls

    @property
    def is_open(self) -> bool:
        """Whether requests can be made."""
        return self._welcomed and not self._reason

    def ask(self, encode: Callable[[int], bytes], publications: int = 0) -> "asyncio.Future[Any]":
        """Send a request, and return what its answer will be.

        `encode` makes its frame of its number. Where the connection breaks before the answer,
        ConnectionLost says how many `publications` may or may not have been delivered.
        """
        if not self.is_open:
            raise ConnectionLost(self._reason or "there is no connection yet")
        assert self._transport is not None
        self._request += 1
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._pending[self._request] = (answer, publications)
        self._transport.write(encode(self._request))
        return answer

    def tell(self, frame: bytes) -> None:
        """Send a frame that has no answer."""
        if self.is_open and self._transport is not None:
            self._transport.write(frame)

    def close(self, reason: str) -> None:
        """Say goodbye and close the connection."""
        self.tell(encode_control(Goodbye(reason)))
        self._end(reason)

    def _end(self, reason: str) -> None:
        if not self._reason:
            self._reason = reason
            if self._transport is not None:
                self._transport.close()
                self._loop.call_later(1.0, self._transport.abort)

    def _take(self, frame: Frame) -> None:
        if not self._welcomed:
            self._greet(decode_answer(frame))
            return
        said = decode_to_client(frame)
        if isinstance(said, list):
            if said and isinstance(said[0], Delivery):
                self._receiver.delivered(said)
            else:
                for item in said:
                    assert isinstance(item, AnswerItem)
                    error = None if item.refusal is None else item.refusal.as_error()
                    self._answer(item.request, item, error)
        elif isinstance(said, GapNotice):
            self._receiver.gap(said.dropped)
        elif isinstance(said, LostNotice):
            self._receiver.lost(said.number, said.reason)
        elif isinstance(said, Status):
            self._answer(said.request, said.status)
        elif isinstance(said, Ping):
            self.tell(encode_control(Pong()))
        elif isinstance(said, Goodbye):
            self._end(said.reason)

    def _greet(self, answer: object) -> None:
        if isinstance(answer, Refusal):
            failure = ConnectionFailed(f"the broker refuses the connection: {answer.message}")
            self.welcome.set_exception(failure)
            self._end(str(failure))
        elif isinstance(answer, Welcome):
            self._frames.frame_max = answer.frame_max
            self._welcomed = True
            if not self.welcome.done():
                self.welcome.set_result(answer)
        else:
            raise ProtocolError("a broker answers a client with a welcome")

    def _answer(self, request: int, value: object, error: OctopisError | None = None) -> None:
        pending = self._pending.pop(request, None)
        if pending is None:
            raise ProtocolError(f"request {request} is answered, but was never made")
        answer = pending[0]
        if answer.done():  # the caller has given up waiting
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)
