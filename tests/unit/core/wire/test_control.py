import pytest

from octopis.core.model import BrokerId
from octopis.core.wire.control import (
    KINDS,
    Goodbye,
    Notice,
    Ping,
    Pong,
    Status,
    StatusRequest,
    decode_control,
    encode_control,
)
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind
from octopis.errors import ProtocolError

EXAMPLES = [
    Ping(),
    Pong(),
    Goodbye("done"),
    Notice(BrokerId("a", 1), 5, holds=True),
    StatusRequest(3),
    Status(3, {"links": {"b,0": {"up": True, "queue_length": 3}}}),
]


def test_every_control_message_has_an_example():
    assert {type(each) for each in EXAMPLES} == set(KINDS)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_control_message_comes_back(message):
    (frame,) = FrameDecoder().receive_data(encode_control(message))
    assert decode_control(frame) == message


def test_other_kinds_are_left_to_others():
    assert decode_control(Frame(FrameKind.NOTIFICATIONS, b"")) is None
    assert decode_control(Frame(250, b"")) is None


def test_damaged_notice_is_a_protocol_error():
    with pytest.raises(ProtocolError, match="a notice cannot be read"):
        decode_control(Frame(FrameKind.NOTICE, b"\x80"))
