"""Somebody who speaks to a broker in frames of his own choice, and notes how he is treated."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import NoReturn, Self

import msgspec

from octopis.client.address import parse_addresses
from octopis.core.wire.client import AnswerItem, decode_to_client
from octopis.core.wire.control import Goodbye, Pong, Refusal, encode_control
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind
from octopis.core.wire.greeting import ClientHello, decode_answer, encode_hello

_READ_BYTES = 2**18
_BUFFER_BYTES = 2**16


class Met(msgspec.Struct):
    """How brokers have taken what an attacker did."""

    asked: int = 0
    accepted: int = 0
    refused: int = 0
    sent_away: int = 0
    """Connections that a broker has ended, or never let in."""

    first_refusal: str = ""
    first_goodbye: str = ""

    def answered(self, answer: AnswerItem) -> None:
        """Count an answer."""
        if answer.refusal is None:
            self.accepted += 1
        else:
            self.refused += 1
            self.first_refusal = self.first_refusal or answer.refusal.message

    def ended(self, reason: str) -> None:
        """Count a connection that a broker has ended."""
        self.sent_away += 1
        self.first_goodbye = self.first_goodbye or reason

    def __str__(self) -> str:
        facts = [f"{self.asked:,} asked, {self.accepted:,} accepted"]
        if self.refused:
            facts.append(f"{self.refused:,} refused ({_short(self.first_refusal)})")
        if self.sent_away:
            reason = _short(self.first_goodbye) or "the connection was closed"
            facts.append(f"{self.sent_away:,} times sent away ({reason})")
        return ", ".join(facts)


class SentAwayError(Exception):
    """The broker has ended the connection; it is counted already."""


class RawClient:
    """A connection to a broker, in bytes. Whatever goes wrong raises SentAwayError."""

    def __init__(self, met: Met) -> None:
        self._met = met
        self._decoder = FrameDecoder()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self, url: str, name: str) -> Self:
        """Connect, say hello, and wait for the welcome."""
        (address,) = parse_addresses(url)
        try:
            self._reader, self._writer = await asyncio.open_connection(*address)
        except OSError as failure:
            self._gone(str(failure))
        try:
            await self.send(encode_hello(ClientHello(name, window=100)))
            for frame in await self.frames():
                answer = decode_answer(frame)
                if isinstance(answer, Refusal):
                    self._gone(answer.message)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Go without a word."""
        self._writer.transport.abort()

    async def send(self, data: bytes) -> None:
        """Send bytes, at the pace that the broker reads them."""
        self._writer.write(data)
        try:
            await self._writer.drain()
        except OSError as failure:
            with suppress(SentAwayError):  # the broker may have said why
                while True:
                    await self.frames()
            raise SentAwayError from failure

    async def send_slowly(self, data: bytes) -> None:
        """Send much, without holding it all in this process, too."""
        view = memoryview(data)
        for start in range(0, len(data), _BUFFER_BYTES):
            await self.send(view[start : start + _BUFFER_BYTES])  # type: ignore[arg-type]

    async def frames(self) -> list[Frame]:
        """Return the next frames; answers are counted."""
        while True:
            try:
                data = await self._reader.read(_READ_BYTES)
            except OSError:
                data = b""
            if not data:
                self._gone("")
            if found := self._decoder.receive_data(data):
                for frame in found:
                    self._count(frame)
                return found

    async def answers(self, count: int) -> None:
        """Wait for so many answers to requests."""
        while count > 0:
            for frame in await self.frames():
                if frame.kind == FrameKind.ANSWERS:
                    count -= len(decode_to_client(frame))  # type: ignore[arg-type]

    async def ask_all(self, requests: Iterable[bytes], at_once: int = 200) -> None:
        """Make requests, some under way at a time, and wait for all answers."""
        for chunk in _chunks(requests, at_once):
            self._met.asked += len(chunk)
            await self.send(b"".join(chunk))
            await self.answers(len(chunk))

    async def stay(self) -> NoReturn:
        """Do nothing but read."""
        while True:
            await self.frames()

    def _count(self, frame: Frame) -> None:
        if frame.kind == FrameKind.ANSWERS:
            for item in decode_to_client(frame):  # type: ignore[union-attr]
                self._met.answered(item)  # type: ignore[arg-type]
        elif frame.kind == FrameKind.GOODBYE:
            said = decode_to_client(frame)
            assert isinstance(said, Goodbye)
            self._gone(said.reason)
        elif frame.kind == FrameKind.PING:
            self._writer.write(encode_control(Pong()))

    def _gone(self, reason: str) -> NoReturn:
        self._met.ended(reason)
        raise SentAwayError(reason)


@asynccontextmanager
async def raw_client(url: str, name: str, met: Met) -> AsyncIterator[RawClient]:
    """Be a client of a broker."""
    client = await RawClient(met).open(url, name)
    try:
        yield client
    finally:
        client.close()


def _chunks(requests: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    for request in requests:
        chunk.append(request)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:99] + "…"
