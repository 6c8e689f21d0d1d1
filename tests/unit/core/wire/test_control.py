import pytest

from octopis import errors
from octopis.core.model import BrokerId
from octopis.core.wire.control import (
    KINDS,
    Goodbye,
    Notice,
    Ping,
    Pong,
    Refusal,
    Status,
    StatusRequest,
    decode_control,
    encode_control,
)
from octopis.core.wire.frames import BodyDecoder, Frame, FrameDecoder, FrameKind, encode
from octopis.errors import ProtocolError

EXAMPLES = [
    Ping(),
    Pong(),
    Goodbye("done"),
    Notice(BrokerId("a", 1), "one", 5, holds=True),
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


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidFilter("unexpected word", 3, "; did you mean AND?"),
        errors.InvalidFilter("nothing there"),
        errors.InvalidSubscription("is another's", "s1"),
        errors.InvalidNotification("no"),
        errors.ProtocolError("no"),
        errors.ConnectionLost("gone", 3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_arrives_as_the_same_class_with_its_message_and_fields(error: errors.OctopisError):
    crossed = BodyDecoder[Refusal](Refusal, "a refusal").decode(encode(Refusal.of(error)))
    found = crossed.as_error()
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


@pytest.mark.parametrize("name", ["SomethingNewer", "restored", "__builtins__", ""])
def test_error_that_is_not_in_the_tree_is_an_operation_failed(name: str):
    found = Refusal(name, "what happened").as_error()
    assert type(found) is errors.OperationFailed
    assert str(found) == "what happened"


def test_fields_that_are_no_plain_values_stay_behind():
    refusal = Refusal.of(errors.CycleFound(("a", "b", "c")))
    assert refusal.fields == {}
    assert "a - b - c - a" in str(refusal.as_error())
