"""Bounds of what clients ask about durable subscriptions: what is beyond would reach the disk."""

import pytest

from octopis.core.delivery.lasting.records import Policy
from octopis.core.wire.durable import (
    CommitStaged,
    DropStaged,
    StageRows,
    decode_durable_request,
    encode_durable_request,
)
from octopis.core.wire.frames import FrameDecoder
from octopis.core.wire.moving import BeginDurable
from octopis.errors import ProtocolError

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
