"""A connection to a broker that blocks: for tasks that do nothing else, and want bytes.

Answers to reads come as they are on the wire, so that whoever reads makes columns of them and no
objects in between. All that is asked here can be asked again after a break: nothing is published.
"""

import secrets
import socket
import ssl
from collections import deque
from itertools import count
from typing import Any

from octopis.client.address import Address
from octopis.client.credentials import Secured
from octopis.client.faults import explained, kind_of, refused
from octopis.client.login import Login
from octopis.core.wire.client import decode_to_client
from octopis.core.wire.control import Goodbye, Ping, Pong, Refusal, encode_control
from octopis.core.wire.durable import (
    AckDurable,
    DurableAnswer,
    DurableInfo,
    ListDurables,
    OpenDurable,
    ReadDurable,
    encode_durable_request,
)
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.core.wire.login import Challenge, encode_proof
from octopis.errors import ConnectionFailed, ConnectionLost, InvalidSubscription

CONNECT_S = 5.0
ANSWER_S = 30.0
PATIENCE_S = 60.0
"""How long a broker may be away, as one that starts again, before a task or a query fails."""

_CHUNK = 2**18
Body = bytes | memoryview


class Gone(InvalidSubscription):
    """A broker that could be asked has no such durable subscription."""


class Connection:
    """One connection, until it breaks: then everything raises ConnectionFailed."""

    def __init__(self, address: Address, secret: str, secured: Secured | None = None) -> None:
        self._secured = secured
        self._shared = not secret
        self._frames = FrameDecoder()
        self._came: deque[Frame] = deque()
        self._numbers = count(1)
        self._reads: deque[int] = deque()
        self._batches: dict[int, Body] = {}
        try:
            self._socket = socket.create_connection(address, CONNECT_S)
        except OSError as failure:
            reason = f"no broker can be reached at octopis://{address}: {failure}"
            raise ConnectionFailed(reason) from failure
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            credentials = None if secured is None else secured.now()
            if credentials is not None:
                self._encrypt(address, credentials.context())
            self._greet(address, secret, Login() if credentials is None else credentials.login())
        except BaseException:
            self.close()
            raise
        self._socket.settimeout(ANSWER_S)

    def _encrypt(self, address: Address, context: ssl.SSLContext) -> None:
        """Speak TLS from here on, or raise ConnectionFailed."""
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=address.host)
        except OSError as failure:
            reason = f"no broker can be reached at octopis://{address}: {explained(failure)}"
            raise kind_of(failure)(reason) from failure

    def _greet(self, address: Address, secret: str, login: Login) -> None:
        name = f"spark-{secrets.token_hex(8)}"
        hello = ClientHello(name, 1, secret=secret or secrets.token_hex(16), login=login.said)
        self._welcomed(address, hello, login)

    def _welcomed(self, address: Address, hello: ClientHello, login: Login) -> Welcome:
        """Say hello, prove who we are where that is asked for, and return the welcome."""
        self._send(encode_hello(hello))
        answer = decode_answer(self._next_frame())
        if isinstance(answer, Challenge):
            self._send(encode_proof(login.answer(answer.message)))
            answer = decode_answer(self._next_frame())
        if isinstance(answer, Refusal):
            failure = refused(answer)
            raise type(failure)(f"no welcome from octopis://{address}: {failure}")
        if not isinstance(answer, Welcome):
            raise ConnectionFailed(f"no welcome from octopis://{address}")
        login.check(answer.verifier)
        self._frames.frame_max = answer.frame_max
        return answer

    def close(self) -> None:
        """End it, whatever is under way."""
        self._socket.close()

    # What is asked

    def open(self, name: str, condition: str | None) -> DurableInfo:
        """Return how a durable subscription is, made now if there is a condition to make it of."""
        found = self._ask(OpenDurable, name, condition, "sql", None, self._shared)
        assert isinstance(found, DurableAnswer)
        return found.durables[0]

    def info(self, name: str) -> DurableInfo | None:
        """Return how a durable subscription is, if it lives here; nothing has to be synced."""
        found = self._ask(ListDurables)
        assert isinstance(found, DurableAnswer)
        return next((each for each in found.durables if each.name == name), None)

    def present(self, name: str) -> DurableInfo:
        """Return how a durable subscription is. Raises Gone, so that the next address is tried."""
        info = self.info(name)
        if info is None:
            reason = (
                f"there is no durable subscription {name!r} here any more: it was dropped, has "
                "expired, or lives at another broker"
            )
            raise Gone(reason, name)
        return info

    def acknowledge(self, name: str, epoch: int, position: int) -> None:
        """Release all up to a position; returns when the broker has that on disk."""
        self._ask(AckDurable, name, epoch, position, self._shared)

    def ask_to_read(self, name: str, after: int, most: int, wait_ms: int = 0) -> int:
        """Ask for what comes after a position; return the number to wait for.

        Several may be under way: they are answered in the order in which they were asked for.
        """
        number = next(self._numbers)
        request = ReadDurable(number, name, after, most, wait_ms, self._shared)
        self._send(encode_durable_request(request))
        self._reads.append(number)
        return number

    def batch(self, number: int) -> Body:
        """Wait for what was read, as it came."""
        while number not in self._batches:
            frame = self._next_frame()
            if frame.kind == FrameKind.BATCH:
                self._batches[self._reads.popleft()] = frame.body
            else:
                self._take(frame)
        return self._batches.pop(number)

    def _ask(self, request: type[Any], *facts: object) -> object:
        number = next(self._numbers)
        self._send(encode_durable_request(request(number, *facts)))
        while True:
            said = self._take(self._next_frame())
            if isinstance(said, DurableAnswer) and said.request == number:
                return said
            if isinstance(said, list) and any(each.request == number for each in said):
                return None

    # Frames

    def _take(self, frame: Frame) -> object:
        """Return what a frame says; what is refused is raised, with all that is under way."""
        said = decode_to_client(frame)
        if isinstance(said, Ping):
            self._send(encode_control(Pong()))
        elif isinstance(said, Goodbye):
            raise ConnectionLost(f"the broker says goodbye: {said.reason}")
        elif isinstance(said, list):
            for refusal in (getattr(each, "refusal", None) for each in said):
                if refusal is not None:
                    raise refusal.as_error()
        return said

    def _next_frame(self) -> Frame:
        while not self._came:
            try:
                data = self._socket.recv(_CHUNK)
            except ssl.SSLError as failure:  # as one that does not take our certificate
                raise kind_of(failure)(explained(failure)) from failure
            except OSError as failure:
                raise ConnectionLost(str(failure) or "the broker does not answer") from failure
            if not data:
                raise ConnectionLost("the broker has closed the connection")
            self._came += self._frames.receive_data(data)
        return self._came.popleft()

    def _send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as failure:
            raise ConnectionLost(str(failure)) from failure
