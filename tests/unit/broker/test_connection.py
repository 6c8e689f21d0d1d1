import asyncio
import logging
from dataclasses import dataclass, field

from octopis.broker.connection import WRITE_BYTES, Connection, LogLimit
from octopis.broker.settings import Limits
from octopis.core.wire.control import Goodbye, Ping, decode_control, encode_control
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind, encode_frame
from octopis.errors import ProtocolError
from support.live import run_live, until

WARNINGS = LogLimit(logging.getLogger("octopis.test"), lines_per_s=1_000)


@dataclass
class Heard:
    """A peer that notes what happens."""

    name: str = "somebody"
    frames: list[Frame] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    writable: int = 0
    refuses: bool = False

    def frames_arrived(self, _: Connection, frames: list[Frame]) -> None:
        if self.refuses:
            raise ProtocolError("we do not like it")
        self.frames += [Frame(frame.kind, bytes(frame.body)) for frame in frames]

    def may_write(self, _: Connection) -> None:
        self.writable += 1

    def connection_lost(self, _: Connection, reason: str) -> None:
        self.lost.append(reason)


class Pair:
    """A connection on a real socket, with a plain stream at the other end."""

    async def __aenter__(self) -> "Pair":
        self.peer = Heard()
        made: list[Connection] = []

        def make() -> Connection:
            made.append(Connection(self.peer, Limits(hello_s=0.2, silence_s=1.0), WARNINGS))
            return made[-1]

        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(make, "127.0.0.1", 0)
        place = self._server.sockets[0].getsockname()
        self.reader, self.writer = await asyncio.open_connection(*place)
        await until(lambda: made)
        self.connection = made[0]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.connection.abort("the test is over")
        self._server.close()
        self.writer.close()
        await self.connection.closed

    async def frame(self) -> Frame:
        """Return the one frame that comes next."""
        (frame,) = FrameDecoder().receive_data(await self.reader.read(1_000))
        return frame

    async def read_all(self) -> list[Frame]:
        return FrameDecoder().receive_data(await self.reader.read(-1))


def test_frames_reach_the_peer_and_bytes_go_out():
    async def work() -> None:
        async with Pair() as pair:
            pair.connection.greeted(pair.peer, 5.0, 1.0)
            pair.writer.write(encode_frame(FrameKind.PING, b"body"))
            await until(lambda: pair.peer.frames)
            assert pair.peer.frames == [Frame(FrameKind.PING, b"body")]
            pair.connection.write(b"hello")
            assert await pair.reader.readexactly(5) == b"hello"

    run_live(work())


def test_only_after_the_greeting_long_frames_are_taken():
    async def work() -> None:
        long = encode_frame(FrameKind.PUBLISH, bytes(10_000))
        async with Pair() as pair:
            pair.writer.write(long)
            (frame,) = await pair.read_all()
            assert frame.kind == FrameKind.REFUSED
        async with Pair() as pair:
            pair.connection.greeted(pair.peer, 5.0, 1.0)
            pair.writer.write(long)
            await until(lambda: pair.peer.frames)

    run_live(work())


def test_protocol_error_of_the_peer_closes_the_connection_with_a_goodbye():
    async def work() -> None:
        async with Pair() as pair:
            pair.connection.greeted(pair.peer, 5.0, 1.0)
            pair.peer.refuses = True
            pair.writer.write(encode_control(Ping()))
            (frame,) = await pair.read_all()
            assert decode_control(frame) == Goodbye("we do not like it")
            assert pair.peer.lost == ["we do not like it"]

    run_live(work())


def test_no_greeting_in_time_closes_the_connection():
    async def work() -> None:
        async with Pair() as pair:
            assert [frame.kind for frame in await pair.read_all()] == [FrameKind.REFUSED]
            assert pair.peer.lost == ["there was no hello within 0.2 s"]

    run_live(work())


def test_other_side_that_closes_is_noticed():
    async def work() -> None:
        async with Pair() as pair:
            pair.connection.greeted(pair.peer, 5.0, 1.0)
            pair.writer.close()
            await until(lambda: pair.peer.lost)
            assert pair.peer.lost == ["the other side has closed the connection"]
            assert pair.connection.is_closing

    run_live(work())


def test_signs_of_life_are_asked_for_and_their_lack_closes_the_connection():
    async def work() -> None:
        async with Pair() as pair:
            pair.connection.greeted(pair.peer, 5.0, 1.0)
            now = asyncio.get_running_loop().time()
            pair.connection.look_after(now + 100)  # nobody was asked before
            assert not pair.connection.is_closing
            assert decode_control(await pair.frame()) == Ping()
            pair.connection.look_after(now + 100.9)
            assert not pair.connection.is_closing
            pair.connection.look_after(now + 101.1)
            assert pair.connection.is_closing

    run_live(work())


def test_whoever_answers_may_be_silent_again():
    async def work() -> None:
        async with Pair() as pair:
            pair.connection.greeted(pair.peer, 5.0, 1.0)
            now = asyncio.get_running_loop().time()
            for seconds in (10, 20, 30):
                pair.connection.look_after(now + seconds)
                pair.connection._heard_at = now + seconds + 0.1
                pair.connection.look_after(now + seconds + 2)
            assert not pair.connection.is_closing

    run_live(work())


def test_socket_that_is_full_says_stop_and_go():
    async def work() -> None:
        async with Pair() as pair:
            pair.connection.greeted(pair.peer, 5.0, 1.0)
            pair.connection.set_buffers(WRITE_BYTES)
            sent = 0
            while pair.connection.is_writable:
                pair.connection.write(bytes(WRITE_BYTES))
                sent += WRITE_BYTES
                await asyncio.sleep(0)
            await pair.reader.readexactly(sent)
            await until(lambda: pair.peer.writable)
            assert pair.connection.is_writable

    run_live(work())


LOG = logging.getLogger("octopis.test")


def test_lines_past_the_limit_are_left_out_and_counted(caplog):
    limit = LogLimit(LOG, lines_per_s=3)
    for number in range(10):
        limit.say(5.1, "bad peers", "peer %d is bad", number)
    assert [record.message for record in caplog.records] == [
        "peer 0 is bad",
        "peer 1 is bad",
        "peer 2 is bad",
    ]
    limit.say(6.0, "bad peers", "peer %d is bad", 11)
    assert caplog.records[-2].message == "bad peers: 7 more lines like the last were left out"
    assert caplog.records[-1].message == "peer 11 is bad"


def test_kinds_are_limited_apart(caplog):
    limit = LogLimit(LOG, lines_per_s=1)
    limit.say(5.0, "one", "first")
    limit.say(5.0, "other", "second")
    assert [record.message for record in caplog.records] == ["first", "second"]


def test_next_second_starts_anew(caplog):
    limit = LogLimit(LOG, lines_per_s=1)
    for second in range(3):
        limit.say(float(second), "one", "line %d", second)
    assert len(caplog.records) == 3
