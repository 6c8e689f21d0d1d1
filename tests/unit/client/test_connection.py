import asyncio
from itertools import count

import pytest

from octopis.client.connection import ClientConnection
from octopis.core.model import BrokerId
from octopis.core.wire.client import (
    AnswerItem,
    Delivery,
    encode_answers,
    encode_delivery,
    encode_gap,
)
from octopis.core.wire.control import Goodbye, Ping, Pong, Refusal, decode_control, encode_control
from octopis.core.wire.frames import FrameDecoder, FrameKind, encode_frame, encode_items
from octopis.core.wire.greeting import ClientHello, Welcome, decode_hello, encode_welcome
from octopis.core.wire.published import encode_published
from octopis.errors import ConnectionFailed, ConnectionLost, InvalidFilter
from support.live import run_live, until

HELLO = ClientHello("me", 10)
PUBLICATION = 77


class Heard:
    """Notes what a broker sends of its own accord."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.dropped = 0

    def delivered(self, deliveries: list[Delivery]) -> None:
        self.deliveries += deliveries

    def gap(self, dropped: int) -> None:
        self.dropped += dropped

    def welcomed(self, welcome: Welcome) -> None:
        self.sessions = [welcome.session]

    def answered(self, item: AnswerItem) -> bool:
        return item.request == PUBLICATION


class Broker:
    """The other end: a real socket, and a test that speaks."""

    async def __aenter__(self) -> "Broker":
        self._arrived: asyncio.Queue = asyncio.Queue()
        self._server = await asyncio.start_server(
            lambda *streams: self._arrived.put_nowait(streams), "127.0.0.1", 0
        )
        place = self._server.sockets[0].getsockname()
        self.heard = Heard()
        loop = asyncio.get_running_loop()
        _, self.client = await loop.create_connection(
            lambda: ClientConnection(HELLO, self.heard, count(1)), *place
        )
        self.reader, self.writer = await self._arrived.get()
        self._decoder = FrameDecoder()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        self._server.close()
        await self.client.lost
        if self.client.welcome.done():
            self.client.welcome.exception()

    async def frame(self):
        while True:
            found = self._decoder.receive_data(await self.reader.read(10_000))
            if found:
                return found[0]

    async def welcome(self) -> None:
        assert decode_hello(await self.frame()) == HELLO
        self.writer.write(encode_welcome(Welcome(BrokerId("a", 0), 2**20, 100)))
        await self.client.welcome


def ping_frame(request: int) -> bytes:
    return encode_frame(FrameKind.UNSUBSCRIBE, request.to_bytes(1, "big"))


def test_client_says_hello_and_is_welcomed():
    async def work() -> None:
        async with Broker() as broker:
            assert not broker.client.is_open
            with pytest.raises(ConnectionLost, match="no connection yet"):
                broker.client.ask(ping_frame)
            await broker.welcome()
            assert broker.client.is_open
            assert broker.client.welcome.result().broker == BrokerId("a", 0)

    run_live(work())


def test_answers_reach_whoever_asked():
    async def work() -> None:
        async with Broker() as broker:
            await broker.welcome()
            first, second = broker.client.ask(ping_frame), broker.client.ask(ping_frame)
            refusal = Refusal.of(InvalidFilter("no such word", 3))
            items = [AnswerItem(2, refusal), AnswerItem(1)]
            broker.writer.write(encode_answers(items))
            assert await first == items[1]
            with pytest.raises(InvalidFilter, match="no such word at column 3"):
                await second

    run_live(work())


def test_deliveries_gaps_and_pings():
    async def work() -> None:
        async with Broker() as broker:
            await broker.welcome()
            item = encode_delivery([3], encode_published({"x": 1}, b"", "you", 1, 1))
            data = encode_items(FrameKind.DELIVER, [item, item]) + encode_gap(5)
            broker.writer.write(data + encode_control(Ping()))
            assert decode_control(await broker.frame()) == Pong()
            assert [each.numbers for each in broker.heard.deliveries] == [[3], [3]]
            assert broker.heard.dropped == 5

    run_live(work())


def test_lost_connection_fails_whatever_waits():
    async def work() -> None:
        async with Broker() as broker:
            await broker.welcome()
            answer = broker.client.ask(ping_frame)
            broker.writer.close()
            with pytest.raises(ConnectionLost):
                await answer
            assert not broker.client.is_ended

    run_live(work())


def test_goodbye_is_the_reason():
    async def work() -> None:
        async with Broker() as broker:
            await broker.welcome()
            broker.writer.write(encode_control(Goodbye("B(a, 0) stops")))
            assert await broker.client.lost == "B(a, 0) stops"
            assert broker.client.is_ended

    run_live(work())


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xff\xff\xff\xff",
        encode_frame(FrameKind.PUBLISH, b""),
        encode_answers([AnswerItem(99)]),
    ],
)
def test_broker_that_speaks_nonsense_is_left(nonsense: bytes):
    async def work() -> None:
        async with Broker() as broker:
            await broker.welcome()
            broker.writer.write(nonsense)
            assert "what came from the broker makes no sense" in await broker.client.lost

    run_live(work())


def test_end_before_the_welcome_fails_the_welcome():
    async def work() -> None:
        async with Broker() as broker:
            broker.writer.close()
            with pytest.raises(ConnectionFailed, match="the broker has closed the connection"):
                await broker.client.welcome

    run_live(work())


def test_answer_that_nobody_waits_for_any_more_is_let_go():
    async def work() -> None:
        async with Broker() as broker:
            await broker.welcome()
            broker.client.ask(ping_frame).cancel()
            broker.writer.write(encode_answers([AnswerItem(1)]))
            broker.writer.write(encode_gap(1))
            await until(lambda: broker.heard.dropped)
            assert broker.client.is_open

    run_live(work())
