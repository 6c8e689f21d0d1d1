"""Requests about durable subscriptions without end: their client waits or goes, nobody else."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.broker import LiveBroker
from octopis.broker.clients.answers import REPLIES_BYTES, REQUESTS_MAX
from octopis.broker.settings import Durability
from octopis.client.client import Client
from octopis.core.filters import parse_filter as parsed
from octopis.core.routing import Algorithm
from octopis.core.wire.client import decode_to_client
from octopis.core.wire.durable import (
    AckDurable,
    ListDurables,
    OpenDurable,
    decode_durable_answer,
    encode_durable_request,
)
from octopis.core.wire.frames import Frame, FrameKind
from octopis.errors import ProtocolError
from support.bombs import BOMBS
from support.live import RawPeer, client_of, line, overlay, raw_client, ready, run_live, until
from support.secure import Folder, client_as
from support.strangers import logged_in

SCOT = line(1)
(HERE,) = SCOT.brokers
STILL_S = 2.0
"""So long may a publication of somebody else take on a busy machine; without turns, 12 s."""

LIST = encode_durable_request(ListDurables(1))


def on_disk(folder: Path) -> Any:
    return overlay(SCOT, Algorithm.TNR, durability=Durability(str(folder)))


async def make(peer: RawPeer, count: int) -> None:
    """Make durable subscriptions whose list is long."""
    about = " AND ".join(f"attribute_{n} = '{'x' * 80}'" for n in range(30))
    opens = [OpenDurable(n, f"d{n}", f"n = {n} AND {about}") for n in range(count)]
    await peer.send(b"".join(map(encode_durable_request, opens)))
    answered: set[int] = set()
    while len(answered) < count:
        for frame in await peer.next_frames():
            assert frame.kind == FrameKind.DURABLES
            answered.add(decode_durable_answer(frame.body).request)


async def beside(
    broker: LiveBroker, client: Client, attacked: "asyncio.Future[Any]"
) -> tuple[float, int]:
    """Return how long a publication took at most meanwhile, and what waited in answers."""
    longest, most = 0.0, 0
    while not attacked.done() or not longest:
        began = time.perf_counter()
        await client.publish({"x": 1})
        longest = max(longest, time.perf_counter() - began)
        raw = broker.clients.get("raw")
        most = max(most, raw._answers.bytes if raw is not None else 0)
    await attacked
    return longest, most


def test_lists_without_end_that_nobody_reads_freeze_nobody_and_fill_no_memory(tmp_path: Path):
    """Where all of one read was done at once, 250 kB of it brought 2 GB of answers."""

    async def work() -> None:
        async with (
            ready(on_disk(tmp_path)) as live,
            client_of(live[HERE]) as other,
            raw_client(live[HERE]) as peer,
        ):
            await make(peer, 60)
            session = live[HERE].clients["raw"]

            async def attack() -> None:
                peer._writer.write(9_000 * LIST)
                while not session.connection.is_closing:
                    await asyncio.sleep(0.01)

            longest, most = await beside(live[HERE], other, asyncio.ensure_future(attack()))
            assert longest < STILL_S
            assert 1_000_000 < most < REPLIES_BYTES + 1_000_000
            await until(lambda: not session.asked)  # in the next turn, or when it has rested
            assert session._answers.bytes == 0
            assert [len(await other.durables())] == [60]

    run_live(work())


def test_only_so_many_wait_for_an_answer(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live, raw_client(live[HERE]) as peer:
            session = live[HERE].clients["raw"]
            body = encode_durable_request(AckDurable(1, "none", 1, 1))[5:]
            frames = [Frame(FrameKind.DURABLE, body)] * (REQUESTS_MAX + 1)
            with pytest.raises(ProtocolError, match="more than 10,000 requests about durable"):
                session.frames_arrived(session.connection, frames)
            assert len(await peer.next_frames())  # those that were taken are answered

    run_live(work())


def test_only_so_many_bytes_of_them_wait_for_an_answer(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live, raw_client(live[HERE]):
            session, memory = live[HERE].clients["raw"], live[HERE].memory
            frames = [Frame(FrameKind.DURABLE, bytes(2**20))] * 17
            before = memory.bytes
            session.frames_arrived(session.connection, frames[:15])
            assert memory.bytes - before == 15 * 2**20
            with pytest.raises(ProtocolError, match="or 16,777,216 bytes of them"):
                session.frames_arrived(session.connection, frames[15:])
            await session.connection.closed  # zeros are no request
            assert not session.asked
            assert memory.bytes == before

    run_live(work())


def test_nothing_is_done_of_what_follows_in_a_read_once_a_client_is_sent_away(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live, raw_client(live[HERE]):
            session = live[HERE].clients["raw"]
            session.send_away("too much")
            session.frames_arrived(session.connection, [Frame(FrameKind.DURABLE, LIST[5:])] * 5)
            assert not session.asked
            session.tell(bytes(1_000))
            assert session._answers.bytes == 0
            await asyncio.sleep(0)
            assert "raw" not in live[HERE].clients

    run_live(work())


def test_requests_of_a_client_are_done_in_order_and_others_have_turns_between(tmp_path: Path):
    async def work() -> None:
        async with (
            ready(on_disk(tmp_path)) as live,
            raw_client(live[HERE]) as peer,
            client_of(live[HERE]) as other,
        ):
            await make(peer, 20)
            await peer.send(800 * LIST)
            began = time.perf_counter()
            await other.open_durable("mine", parsed("x = 1"))
            assert time.perf_counter() - began < STILL_S
            frames: list[Frame] = []
            while len(frames) < 800:
                frames += await peer.next_frames()
            counts = [len(decode_durable_answer(each.body).durables) for each in frames]
            assert counts == sorted(counts)
            assert set(counts) == {20, 21}  # the other one did not wait for all of them

    run_live(work())


def secured(folder: Path) -> Folder:
    found = Folder(folder / "security", SCOT)
    found.say(
        '[roles.all]\npublish = "TRUE"\nsubscribe = "NOT (kind = \'secret\')"\ndurable = true\n'
        '[users.alice]\nroles = ["all"]\n[users.carol]\nroles = ["all"]\n'
    )
    return found


@pytest.mark.parametrize("part", range(2))
def test_parser_bombs_as_durable_subscriptions(tmp_path: Path, part: int):
    """Each is refused in words, or taken where it is harmless; its client stays."""
    folder = secured(tmp_path)
    taken = {"LIKE of signs", "LIKE with many parts", "many LIKE", "a product of sums"}

    async def attack(live: Any) -> None:
        async with logged_in(folder, live[HERE].address) as peer:
            for number, (what, (text, dialect)) in enumerate(list(BOMBS.items())[part::2]):
                wish = OpenDurable(number, f"d{number}", text, dialect)
                await peer.send(encode_durable_request(wish))
                (frame, *_) = await peer.next_frames()
                assert len(frame.body) < 6_000  # what was said is not all said back
                if frame.kind == FrameKind.ANSWERS:
                    (answer,) = decode_to_client(frame)
                    assert answer.request == number
                    assert answer.refusal is not None
                else:
                    assert frame.kind == FrameKind.DURABLES
                    assert what in taken

    async def work() -> None:
        configuration = folder.overlay(
            SCOT, algorithm=Algorithm.TNR, durability=Durability(str(tmp_path / "disk"))
        )
        async with (
            ready(configuration) as live,
            client_as(live[HERE], folder.by_certificate()) as alice,
        ):
            attacked = asyncio.ensure_future(attack(live))
            longest, _ = await beside(live[HERE], alice, attacked)
            assert longest < STILL_S

    run_live(work())


def test_long_filters_without_end_leave_time_for_others(tmp_path: Path):
    """Each of them takes milliseconds to read, and 250 kB of them nearly a second."""
    longest_filter = " OR ".join(f"a{n} = {n}" for n in range(250))
    wishes = [OpenDurable(n, f"d{n}", f"z = {n} OR {longest_filter}") for n in range(60)]

    async def work() -> None:
        async with (
            ready(on_disk(tmp_path)) as live,
            client_of(live[HERE]) as other,
            raw_client(live[HERE]) as peer,
        ):
            session = live[HERE].clients["raw"]
            frames = [Frame(FrameKind.DURABLE, encode_durable_request(each)[5:]) for each in wishes]
            session.frames_arrived(session.connection, frames)
            assert len(session.asked) == len(wishes)  # nothing is done where it is read
            turns = 0
            while session.asked:
                before = len(session.asked)
                await asyncio.sleep(0)
                assert before - len(session.asked) <= 5
                turns += 1
            assert turns > 10
            await other.publish({"x": 1})
            found = 0
            while found < len(wishes):
                found += len(await peer.next_frames())

    run_live(work())
