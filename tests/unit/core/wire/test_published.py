import pytest

from octopis.core.model import Notification
from octopis.core.wire.frames import encode
from octopis.core.wire.published import decode_checked, decode_published, encode_published
from octopis.errors import InvalidNotification, ProtocolError

ONE = encode_published({"x": 1, "name": "é"}, b"\x00", "me", 7, 123)


def array(*items: bytes) -> bytes:
    return bytes([0x90 + len(items)]) + b"".join(items)


def test_notification_comes_back_with_the_bytes_that_it_came_in():
    (found,) = decode_published(array(ONE))
    assert isinstance(found, Notification)
    assert found.attributes == {"x": 1, "name": "é"}
    assert (found.payload, found.publisher, found.sequence) == (b"\x00", "me", 7)
    assert found.intended_ns == 123
    assert found.encoded == ONE


def test_encoded_bytes_do_not_keep_the_frame_alive():
    frame = bytearray(array(ONE, ONE))
    found = decode_published(memoryview(frame))
    frame[:] = bytes(len(frame))
    assert found[1].encoded == ONE


def test_client_publishes_in_its_own_name_only():
    assert decode_checked(array(ONE), "me")[0].sequence == 7
    with pytest.raises(InvalidNotification, match="'you' cannot publish in the name of 'me'"):
        decode_checked(array(ONE), "you")


BAD = [
    {"x": None},
    {"x": [1]},
    {"x": float("inf")},
    {"x": float("nan")},
    {"x": 2**63},
    {"": 1},
    {"n" * 256: 1},
    {"x": "y" * 65_536},
    {str(number): 1 for number in range(65)},
]


@pytest.mark.parametrize("attributes", BAD, ids=str)
def test_what_checked_refuses_is_refused_here_in_the_same_words(attributes: dict):
    with pytest.raises(InvalidNotification) as checked:
        Notification.checked(attributes)
    body = array(ONE, encode((attributes, b"", "me", 1, 1)))
    with pytest.raises(InvalidNotification) as decoded:
        decode_checked(body, "me")
    assert str(decoded.value) == f"notification 2 of the batch: {checked.value}"
    with pytest.raises(ProtocolError):
        decode_published(body)


@pytest.mark.parametrize(
    "attributes",
    [
        {"x": 2**63 - 1, "y": -(2**63)},
        {"n" * 255: "y" * 65_535},
        {str(number): True for number in range(64)},
        {"x": 1.7976931348623157e308},
    ],
    ids=["integers", "text", "64 attributes", "float"],
)
def test_what_checked_lets_pass_passes_at_its_limits(attributes: dict):
    Notification.checked(attributes)
    body = array(encode((attributes, b"", "me", 1, 1)))
    assert decode_checked(body, "me")[0].attributes == attributes


@pytest.mark.parametrize(
    "body", [encode([1]), encode([[{}, b""]]), encode([[{}, b"", "me", 1, 1, b"more"]]), b"\xc1"]
)
def test_what_is_no_notification_at_all_is_a_protocol_error(body: bytes):
    with pytest.raises(ProtocolError, match="a batch of notifications cannot be read"):
        decode_checked(body, "me")


def test_attributes_that_are_no_mapping_are_refused():
    with pytest.raises(InvalidNotification, match="the attributes of notification 1"):
        decode_checked(encode([[["x", 1], b"", "me", 1, 1]]), "me")
