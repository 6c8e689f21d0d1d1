import pytest

from octopis.core.wire.frames import (
    FRAME_MAX,
    BodyDecoder,
    Frame,
    FrameDecoder,
    FrameKind,
    encode,
    encode_frame,
    encode_items,
)
from octopis.errors import ProtocolError

PING = encode_frame(FrameKind.PING, b"body")


def test_frame_is_a_length_a_kind_and_a_body():
    assert PING == b"\x00\x00\x00\x05\x05body"
    assert FrameDecoder().receive_data(PING) == [Frame(FrameKind.PING, b"body")]


def test_several_frames_come_in_order_and_the_rest_waits():
    decoder = FrameDecoder()
    found = decoder.receive_data(PING + encode_frame(FrameKind.PONG, b"") + PING[:3])
    assert [frame.kind for frame in found] == [FrameKind.PING, FrameKind.PONG]
    assert decoder.pending == 3
    assert decoder.receive_data(PING[3:]) == [Frame(FrameKind.PING, b"body")]


def test_default_maximum_is_16_mib():
    assert FRAME_MAX == 16 * 1024 * 1024


def test_length_over_the_maximum_is_refused_before_a_byte_of_the_body_came():
    decoder = FrameDecoder(frame_max=100)
    with pytest.raises(ProtocolError, match="a frame of 101 bytes is announced, more than the 100"):
        decoder.receive_data(b"\x00\x00\x00\x65")


def test_length_at_the_maximum_passes():
    decoder = FrameDecoder(frame_max=100)
    assert decoder.receive_data(encode_frame(FrameKind.PING, bytes(99)))[0].body == bytes(99)


def test_only_what_has_arrived_is_kept():
    decoder = FrameDecoder()
    decoder.receive_data(b"\x00\xff\xff\xff\x05" + bytes(1_000))
    assert decoder.pending == 1_005


def test_empty_frame_is_refused():
    with pytest.raises(ProtocolError, match="has no kind"):
        FrameDecoder().receive_data(bytes(4))


def test_items_that_are_encoded_already_become_one_array():
    items = [encode(each) for each in ("one", 2, [3.5])]
    data = encode_items(FrameKind.CHANGES, items)
    assert data == encode_frame(FrameKind.CHANGES, b"\xdd\x00\x00\x00\x03" + b"".join(items))


def test_numbers_of_kinds_are_all_different():
    assert len(set(FrameKind)) == len(FrameKind.__members__)


def test_value_of_the_wanted_type_comes_back():
    assert BodyDecoder[list[int]](list[int], "a list").decode(encode([1, 2])) == [1, 2]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", encode(["text"]), encode([1])[:-1], encode([1]) + b"x", b"\x91" * 100_000],
    ids=["nothing", "no msgpack", "another type", "cut short", "too much", "nested without end"],
)
def test_anything_else_is_a_protocol_error_that_says_what(body: bytes):
    with pytest.raises(ProtocolError, match="a list cannot be read"):
        BodyDecoder[list[int]](list[int], "a list").decode(body)


def test_text_that_is_not_utf_8_is_a_protocol_error():
    with pytest.raises(ProtocolError, match="a name cannot be read"):
        BodyDecoder[str](str, "a name").decode(b"\xa1\xff")
