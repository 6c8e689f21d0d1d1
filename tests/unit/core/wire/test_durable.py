"""Bounds of what clients ask about durable subscriptions: what is beyond would reach the disk."""

import pytest

from octopis.core.delivery.lasting.records import Policy
from octopis.core.wire.durable import (
    PARTS_MAX,
    CommitStaged,
    DropStaged,
    StageRows,
    decode_durable_request,
    encode_durable_request,
)
from octopis.core.wire.frames import FrameDecoder, encode
from octopis.core.wire.moving import BeginDurable
from octopis.errors import InvalidNotification, ProtocolError

LAST = 2**31 - 1


def said(request):
    (frame,) = FrameDecoder().receive_data(encode_durable_request(request))
    return decode_durable_request(frame.body)


def staging(batch: int) -> list:
    return [
        StageRows(1, "q", batch, 0, 0, 0, b""),
        CommitStaged(1, "q", batch, [(0, 0, 1)]),
        DropStaged(1, "q", batch, [(0, 0)]),
    ]


def begin(streams: int) -> BeginDurable:
    return BeginDurable(1, "risk", 0, 9, 0, Policy.REFUSE, dict.fromkeys(range(streams), 5))


@pytest.mark.parametrize("request_", [*staging(0), *staging(LAST), begin(4_096)])
def test_what_is_within_bounds_is_read_as_it_was_said(request_):
    assert said(request_) == request_


@pytest.mark.parametrize("request_", [*staging(LAST + 1), *staging(-1), begin(4_097)])
def test_what_is_beyond_is_no_request(request_):
    with pytest.raises(ProtocolError):
        said(request_)


def parts(count: int) -> list[dict[str, object]]:
    numbers = range(count)
    about = {"request": 1, "query": "q", "batch": 7}
    return [
        {"ask": "commit", **about, "attempts": [(n, 2**62, 1) for n in numbers]},
        {"ask": "unstage", **about, "attempts": [(n, 2**62) for n in numbers]},
    ]


@pytest.mark.parametrize("kind", [0, 1])
def test_a_batch_has_only_so_many_parts(kind: int):
    assert len(decode_durable_request(encode(parts(PARTS_MAX)[kind])).attempts) == PARTS_MAX
    with pytest.raises(ProtocolError, match="length <= 10000"):
        decode_durable_request(encode(parts(PARTS_MAX + 1)[kind]))


@pytest.mark.parametrize("request_", [CommitStaged, DropStaged])
def test_who_would_ask_for_more_parts_is_told_before_anybody_is_asked(request_):
    with pytest.raises(InvalidNotification, match="batch 7 has 10,001 parts, more than 10,000"):
        request_(1, "q", 7, [(n, 1, 1) for n in range(PARTS_MAX + 1)])
