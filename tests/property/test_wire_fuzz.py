"""Random bytes never raise anything but the protocol's own errors."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.core.routing.messages import Message
from octopis.core.wire.client import decode_from_client, decode_to_client
from octopis.core.wire.control import decode_control
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind
from octopis.core.wire.greeting import decode_answer, decode_hello
from octopis.core.wire.link import LinkDecoder, encode_message, frames_of
from octopis.core.wire.login import decode_proof
from octopis.core.wire.published import decode_checked
from octopis.errors import InvalidNotification, OctopisError, ProtocolError
from support.wire_strategies import messages

DECODERS: list[Callable[[Frame], object]] = [
    lambda frame: LinkDecoder().decode(frame),
    decode_from_client,
    decode_to_client,
    decode_control,
    decode_hello,
    decode_answer,
    decode_proof,
]


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_random_bytes_make_frames_or_a_protocol_error(pieces: list[bytes]):
    decoder = FrameDecoder(frame_max=1_000)
    try:
        for piece in pieces:
            for frame in decoder.receive_data(piece):
                assert len(frame.body) < 1_000
            assert decoder.pending <= 1_004
    except ProtocolError:
        pass


@pytest.mark.parametrize("decode", DECODERS)
@given(kind=st.sampled_from(FrameKind) | st.integers(0, 255), body=st.binary(max_size=200))
def test_random_body_decodes_or_is_a_protocol_error(decode, kind: int, body: bytes):
    with contextlib.suppress(ProtocolError):
        decode(Frame(kind, body))


@given(st.binary(max_size=200))
def test_random_publications_are_refused_in_words(body: bytes):
    with contextlib.suppress(ProtocolError, InvalidNotification):
        decode_checked(body, "me")


@given(messages, st.data())
def test_damaged_message_decodes_or_is_a_protocol_error(message: Message, data: st.DataObject):
    frames = bytearray(b"".join(frames_of([encode_message(message)])))
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(frames) - 1))
        frames[place] = data.draw(st.integers(0, 255))
    link = LinkDecoder()
    try:
        for frame in FrameDecoder().receive_data(bytes(frames)):
            link.decode(frame)
    except OctopisError as error:
        assert isinstance(error, ProtocolError)  # noqa: PT017 - or it decodes, which is fine
