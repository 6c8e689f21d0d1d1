"""Targets without IO: frames however they are split, and the decoder of every kind of message.

An input of `frames` is a list of lengths to split at, then the stream; that of a message is a kind
of frame, then its body. What can be decoded is encoded and decoded again, and must be the same.
"""

from collections.abc import Callable

import msgspec

from octopis.benchmarks.fuzz import seeds
from octopis.benchmarks.fuzz.laws import Check, hold, ours, same_again
from octopis.core.wire.client import (
    AnswerItem,
    Delivery,
    PublishRequest,
    decode_from_client,
    decode_to_client,
)
from octopis.core.wire.control import Refusal, decode_control, encode_control
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind, encode, encode_frame
from octopis.core.wire.greeting import (
    BrokerHello,
    ClientHello,
    Welcome,
    decode_answer,
    decode_hello,
    encode_hello,
    encode_refusal,
    encode_welcome,
)
from octopis.core.wire.inquiries import encode_asking
from octopis.core.wire.link import LinkControl, LinkDecoder, encode_message, frames_of
from octopis.core.wire.login import (
    Challenge,
    decode_proof,
    encode_challenge,
    encode_proof,
)
from octopis.core.wire.posts import Posts, encode_posts
from octopis.core.wire.published import attributes_of, decode_checked, decode_one
from octopis.core.wire.targeted import TargetedDecoder
from octopis.errors import InvalidNotification, OctopisError, ProtocolError

FRAME_MAX = 2_000
_SPLITS_MAX = 16
_OUR_BIT, _BROKERS, _CLUSTERS = 1, 75, 5


# Frames


def check_frames(data: bytes) -> None:
    """Cut a stream into frames, whole and in pieces: both must come to the same."""
    if not data:
        return
    count = data[0] % _SPLITS_MAX
    lengths, stream = data[1 : 1 + count], data[1 + count :]
    whole, fault = _cut([stream])
    pieces, at = [], 0
    for length in lengths:
        pieces.append(stream[at : at + length])
        at += length
    pieces.append(stream[at:])
    parts, other_fault = _cut(pieces)
    hold(fault == other_fault, "a stream in pieces fails otherwise than the whole")
    # Of a read that fails, the frames before the fault are not given out: the connection ends.
    hold(fault or whole == parts, "a stream in pieces makes other frames than the whole")


def _cut(pieces: list[bytes]) -> tuple[list[tuple[int, bytes]], bool]:
    decoder = FrameDecoder(FRAME_MAX)
    found = []
    try:
        for piece in pieces:
            found += [(kind, bytes(body)) for kind, body in decoder.receive_data(piece)]
            hold(decoder.pending <= FRAME_MAX + 4, "more is held than a frame can have")
    except ProtocolError:
        return found, True
    hold(all(len(body) < FRAME_MAX for _, body in found), "a frame is longer than it may be")
    return found, False


def frame_seeds() -> list[bytes]:
    """Return streams of several frames, with where to split them."""
    found = seeds.frames()
    streams = [b"".join(found[at : at + 4]) for at in range(0, len(found), 4)]
    return [bytes([5, 1, 3, 5, 1, 40]) + stream for stream in streams] + [b"\x00" + found[0]]


# Messages


def _check(decode: Callable[[Frame], object]) -> Check:
    """Return a check of a decoder, which raises ProtocolError and nothing else."""

    def check(data: bytes) -> None:
        if not data:
            return
        try:
            decode(Frame(data[0], memoryview(data)[1:]))
        except ProtocolError:
            return

    return check


def _first(frame: bytes) -> Frame:
    """Return the only frame of bytes that we have encoded."""
    (found,) = FrameDecoder(2**24).receive_data(frame)
    return found


def _again(
    said: object, encode_one: Callable[[object], bytes], decode: Callable[[Frame], object]
) -> None:
    same_again(said, encode_one, lambda frame: decode(_first(frame)))


def _greeting(frame: Frame) -> None:
    for decode in (decode_hello, decode_answer, decode_proof):
        try:
            said = decode(frame)
        except ProtocolError:
            continue
        _again(said, _encode_greeting, decode)
        if isinstance(said, Refusal):
            hold(isinstance(said.as_error(), OctopisError), "a refusal is no error of ours")


def _encode_greeting(said: object) -> bytes:
    match said:
        case BrokerHello() | ClientHello():
            return encode_hello(said)
        case Welcome():
            return encode_welcome(said)
        case Refusal():
            return encode_refusal(said)
        case Challenge():
            return encode_challenge(said.message)
        case _:
            return encode_proof(said.message)  # type: ignore[attr-defined]


def _control(frame: Frame) -> None:
    said = decode_control(frame)
    if said is not None:
        _again(said, encode_control, decode_control)  # type: ignore[arg-type]


def _from_client(frame: Frame) -> None:
    said = decode_from_client(frame)
    if not isinstance(said, PublishRequest):
        kind = FrameKind(frame.kind)
        _again(said, lambda each: encode_frame(kind, encode(each)), decode_from_client)
        return
    try:
        batch = decode_checked(said.notifications, "me", 10_000)
    except InvalidNotification:
        return
    for each in batch:
        with ours():
            alone, attributes = decode_one(each.encoded), attributes_of(each.encoded)
        hold(alone == each, "a notification is another one when read alone")
        hold(attributes == each.attributes, "its attributes are others")
        same_again(each.attributes, encode, msgspec.msgpack.decode)


def _to_client(frame: Frame) -> None:
    said = decode_to_client(frame)
    kind = FrameKind(frame.kind)
    _again(said, lambda each: encode_frame(kind, encode(each)), decode_to_client)
    for each in said if isinstance(said, list) else ():
        if isinstance(each, AnswerItem) and each.refusal is not None:
            error = each.refusal.as_error()
            hold(isinstance(error, OctopisError) and bool(repr(error)), "it is no error of ours")
            str(error)
        elif isinstance(each, Delivery):
            same_again(each.notification, encode, msgspec.msgpack.decode)


def _link(frame: Frame) -> None:
    said = LinkDecoder().decode(frame)
    if isinstance(said, Posts):
        _again(said, lambda each: encode_posts(each.posts), lambda each: LinkDecoder().decode(each))  # type: ignore[attr-defined]
    elif isinstance(said, LinkControl):
        encode_said = encode_control if decode_control(frame) is not None else encode_asking
        _again(said, encode_said, lambda each: LinkDecoder().decode(each))  # type: ignore[arg-type]
    else:
        encoded = frames_of([encode_message(each) for each in said])
        decoder = LinkDecoder()
        with ours():
            again = [message for each in encoded for message in decoder.decode(_first(each))]  # type: ignore[union-attr]
        hold(
            frames_of([encode_message(each) for each in again]) == encoded,
            "what a neighbour said comes back as something else",
        )


def _targeted(frame: Frame) -> None:
    for is_numbered in (False, True):
        decoder = TargetedDecoder(_OUR_BIT, _BROKERS, _CLUSTERS, is_numbered=is_numbered)
        if frame.kind != decoder.kind:
            continue
        found = decoder.decode(frame.body)
        hold(not is_numbered or all(each.distances is not None for each in found), "no numbers")
        hold(decoder.unreadable <= len(frame.body), "more are unreadable than there can be")
        items = [decoder.encode(each)[1] for each in found]
        with ours():
            again = decoder.decode_items(items)
        hold([decoder.encode(each)[1] for each in again] == items, "copies come back as others")


def _seeds_of(found: Callable[[], list[bytes]]) -> Callable[[], list[bytes]]:
    """Return inputs of single frames: the kind and the body, without the length."""
    return lambda: [frame[4:] for frame in found()]


MESSAGES: dict[str, tuple[Check, Callable[[], list[bytes]]]] = {
    "greeting": (_check(_greeting), _seeds_of(seeds.greetings)),
    "control": (_check(_control), _seeds_of(seeds.controls)),
    "from-client": (_check(_from_client), _seeds_of(seeds.from_clients)),
    "to-client": (_check(_to_client), _seeds_of(seeds.to_clients)),
    "link": (_check(_link), _seeds_of(seeds.links)),
    "targeted": (_check(_targeted), _seeds_of(seeds.targeted)),
}
