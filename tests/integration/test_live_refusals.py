"""A request that makes no sense is refused with its reason; the connection and others go on."""

import pytest

from octopis.broker.broker import LiveBroker
from octopis.core.wire.client import (
    AnswerItem,
    SubscribeRequest,
    decode_to_client,
    encode_publish,
    encode_request,
)
from octopis.core.wire.frames import encode
from octopis.core.wire.published import encode_published
from octopis.errors import InvalidFilter, InvalidNotification
from support.live import (
    RawPeer,
    raw_client,
)
from support.witness import with_witness


async def answer_to(peer: RawPeer, data: bytes) -> AnswerItem:
    await peer.send(data)
    for frame in await peer.next_frames():
        said = decode_to_client(frame)
        if isinstance(said, list):
            assert isinstance(said[0], AnswerItem)
            return said[0]
    raise AssertionError("there was no answer")


@pytest.mark.parametrize(
    ("wanted", "dialect", "reason"),
    [
        ("price >", "sql", "at column 8"),
        ("x > " + "1" * 5_000, "sql", "more than"),
        (" AND ".join(["x > 1"] * 700), "sql", "more than"),
        ("x > 1", "xpath", "no filter dialect"),
    ],
)
def test_bad_filter_is_refused_and_the_connection_stays(wanted: str, dialect: str, reason: str):
    async def bad(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            request = SubscribeRequest(7, 1, "raw/1", wanted, dialect, 0)
            answer = await answer_to(peer, encode_request(request))
            assert answer.request == 7
            assert answer.refusal is not None
            assert reason in answer.refusal.message
            assert not broker.clients["raw"].numbers
            request = SubscribeRequest(8, 1, "raw/1", "y > 1", "sql", 0)
            assert (await answer_to(peer, encode_request(request))).refusal is None

    with_witness(bad)


def test_invalid_filter_arrives_as_it_was_raised():
    async def bad(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            request = SubscribeRequest(7, 1, "raw/1", "price > 50 AND AND", "sql", 0)
            answer = await answer_to(peer, encode_request(request))
            error = answer.refusal.as_error()
            assert isinstance(error, InvalidFilter)
            assert (error.column, error.reason in str(error)) == (16, True)

    with_witness(bad)


@pytest.mark.parametrize(
    ("notification", "reason"),
    [
        ([{"x": None}, b"", "raw", 1, 1], "notification 2 of the batch: attribute 'x'"),
        ([{"": 1}, b"", "raw", 1, 1], "attribute names have 1 to 255 characters"),
        ([{"x": float("nan")}, b"", "raw", 1, 1], "compares with nothing"),
        ([{"x": 2**64 - 1}, b"", "raw", 1, 1], "does not fit in 64 bits"),
        ([{f"x{n}": n for n in range(65)}, b"", "raw", 1, 1], "at most 64 attributes"),
        ([{"x": "y" * 65_536}, b"", "raw", 1, 1], "65536 characters"),
        ([{"x": 1}, "text", "raw", 1, 1], "the payload must be bytes"),
        ([{"x": 1}, b"", "somebody else", 1, 1], "in the name of 'somebody else'"),
        ([{"x": 1}, b"", "raw", 2**63, 1], "sequence of notification 2 is from 0 to"),
        ([{"x": 1}, b"", "raw", -1, 1], "sequence of notification 2 is from 0 to"),
        ([{"x": 1}, b"", "raw", 1, 2**64 - 1], "its intended_ns at most that"),
        ([{"x": 1}, bytes(1_100_000), "raw", 1, 1], "at most 4,096 notifications and 1,048,576"),
    ],
)
def test_invalid_notification_is_refused_with_its_whole_batch(notification: list, reason: str):
    async def bad(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            good = encode_published({"x": 99}, b"", "raw", 1, 1)
            data = encode_publish(3, [good, encode(notification)])
            answer = await answer_to(peer, data)
            assert answer.request == 3
            error = answer.refusal.as_error()
            assert isinstance(error, InvalidNotification)
            assert reason in str(error)

    with_witness(bad)


def test_notification_that_is_too_long_is_refused():
    async def bad(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            data = encode_publish(3, [encode([{"x": 1}, bytes(9_000_000), "raw", 1, 1])])
            answer = await answer_to(peer, data)
            assert answer.refusal is not None
            assert "more than 8,388,608" in answer.refusal.message

    with_witness(bad)
