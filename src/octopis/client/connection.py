"""The client's end of one connection: requests with their answers, and what is delivered."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

from octopis.client.address import Address
from octopis.client.faults import explained, kind_of, refused
from octopis.client.login import Login
from octopis.core.model import BrokerId
from octopis.core.wire.client import (
    AnswerItem,
    Delivery,
    GapNotice,
    LostNotice,
    MissedNotice,
    decode_to_client,
)
from octopis.core.wire.control import Goodbye, Ping, Pong, Refusal, Status, encode_control
from octopis.core.wire.durable import DurableAnswer, DurableBatch
from octopis.core.wire.frames import Frame, FrameDecoder
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.core.wire.login import Challenge, encode_proof
from octopis.core.wire.moving import MoveAnswer
from octopis.errors import (
    ConnectionFailed,
    ConnectionLost,
    LoginFailed,
    OctopisError,
    ProtocolError,
)


class Receiver(Protocol):
    """Who takes what a broker sends of its own accord."""

    def delivered(self, deliveries: list[Delivery]) -> None:
        """Take deliveries in."""

    def gap(self, dropped: int) -> None:
        """Deliveries were dropped, because this client was too slow."""

    def missed(self, host: BrokerId, count: int | None) -> None:
        """Notifications published at a host will not come."""

    def lost(self, number: int, reason: str) -> None:
        """A subscription is another connection's now."""

    def welcomed(self, welcome: Welcome) -> None:
        """The broker takes us in; what comes next is of this session."""

    def answered(self, item: AnswerItem) -> bool:
        """Take the answer to a publication; False where there was none with that number."""


class ClientConnection(asyncio.Protocol):
    """One connection to a broker, until it is lost. `requests` are the numbers for requests."""

    def __init__(
        self,
        hello: ClientHello,
        receiver: Receiver,
        requests: Iterator[int],
        login: Login | None = None,
    ) -> None:
        self._hello = hello
        self._login = login or Login()
        self._requests = requests
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._frames = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._reason = ""
        self._welcomed = False
        self.is_ended = False
        """Whether the broker has said goodbye: the session cannot go on elsewhere."""

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
        if self._reason:
            return  # another connection may have taken its place
        try:
            for frame in self._frames.receive_data(data):
                self._take(frame)
        except ProtocolError as failure:
            self.close(f"what came from the broker makes no sense: {failure}")
        self.heard_at = self._loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail whatever waits for an answer."""
        reason = self._reason or (explained(exc) if exc else "the broker has closed the connection")
        self._reason = reason
        if not self.welcome.done():
            kind = ConnectionFailed if exc is None else kind_of(exc)
            self.welcome.set_exception(kind(reason))
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(reason))
        self._pending.clear()
        if not self.lost.done():
            self.lost.set_result(reason)

    # What the client calls

    @property
    def is_open(self) -> bool:
        """Whether requests can be made."""
        return self._welcomed and not self._reason

    def ask(self, encode: Callable[[int], bytes]) -> "asyncio.Future[Any]":
        """Send a request, and return what its answer will be.

        `encode` makes its frame of its number. It is ConnectionLost where the connection breaks
        before.
        """
        if not self.is_open:
            raise ConnectionLost(self._reason or "there is no connection yet")
        assert self._transport is not None
        request = next(self._requests)
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._pending[request] = answer
        self._transport.write(encode(request))
        return answer

    def tell(self, frame: bytes) -> None:
        """Send a frame whose answer, if there is one, the receiver knows."""
        if self.is_open and self._transport is not None:
            self._transport.write(frame)

    def close(self, reason: str) -> None:
        """Say goodbye, which ends the session, and close the connection."""
        self.tell(encode_control(Goodbye(reason)))
        self._end(reason)

    def abort(self, reason: str) -> None:
        """Close the connection at once, without goodbye: the session may go on elsewhere."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.abort()

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
            self._take_items(said)
        elif isinstance(said, GapNotice):
            self._receiver.gap(said.dropped)
        elif isinstance(said, MissedNotice):
            self._receiver.missed(said.host, said.count)
        elif isinstance(said, LostNotice):
            self._receiver.lost(said.number, said.reason)
        elif isinstance(said, Status):
            self._answer(said.request, said.status)
        elif isinstance(said, DurableBatch | DurableAnswer | MoveAnswer):
            self._answer(said.request, said)
        elif isinstance(said, Ping):
            self.tell(encode_control(Pong()))
        elif isinstance(said, Goodbye):
            self.is_ended = True
            self._end(said.reason)

    def _take_items(self, items: list[AnswerItem] | list[Delivery]) -> None:
        if items and isinstance(items[0], Delivery):
            self._receiver.delivered(items)
            return
        for item in cast("list[AnswerItem]", items):
            if not self._receiver.answered(item):
                error = None if item.refusal is None else item.refusal.as_error()
                self._answer(item.request, item, error)

    def _greet(self, answer: object) -> None:
        if isinstance(answer, Refusal):
            self._refuse(refused(answer))
        elif isinstance(answer, Challenge):
            self._prove(answer)
        elif isinstance(answer, Welcome):
            try:
                self._login.check(answer.verifier)
            except LoginFailed as failure:
                self._refuse(failure)
                return
            self._frames.frame_max = answer.frame_max
            self._welcomed = True
            self._receiver.welcomed(answer)
            if not self.welcome.done():
                self.welcome.set_result(answer)
        else:
            raise ProtocolError("a broker answers a client with a welcome")

    def _prove(self, challenge: Challenge) -> None:
        assert self._transport is not None
        try:
            self._transport.write(encode_proof(self._login.answer(challenge.message)))
        except LoginFailed as failure:
            self._refuse(failure)

    def _refuse(self, failure: ConnectionFailed) -> None:
        if not self.welcome.done():
            self.welcome.set_exception(failure)
        self._end(str(failure))

    def _answer(self, request: int, value: object, error: OctopisError | None = None) -> None:
        answer = self._pending.pop(request, None)
        if answer is None:
            raise ProtocolError(f"request {request} is answered, but was never made")
        if answer.done():  # the caller has given up waiting
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)


async def dial(
    address: Address,
    connect_s: float,
    make: Callable[[], ClientConnection],
    context: ssl.SSLContext | None = None,
) -> ClientConnection:
    """Return a connection that a broker has welcomed; over TLS, if there is a `context`.

    Raises ConnectionFailed; LoginFailed where trying again does not help.
    """
    loop = asyncio.get_running_loop()
    host = None if context is None else address.host
    try:
        async with asyncio.timeout(connect_s):
            _, connection = await loop.create_connection(
                make, *address, ssl=context, server_hostname=host
            )
            try:
                await connection.welcome
            except BaseException:
                connection.abort("there was no welcome")
                raise
    except TimeoutError as failure:
        reason = f"no broker answers at octopis://{address} within {connect_s:g} s"
        raise ConnectionFailed(reason) from failure
    except OSError as failure:
        reason = f"no broker can be reached at octopis://{address}: {explained(failure)}"
        raise kind_of(failure)(reason) from failure
    except ConnectionFailed as failure:
        kind = LoginFailed if isinstance(failure, LoginFailed) else ConnectionFailed
        raise kind(f"no welcome from octopis://{address}: {failure}") from failure
    return connection
