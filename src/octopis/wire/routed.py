"""Notifications between brokers: the publisher's bytes, with a small header where one is needed."""

import msgspec
from msgspec import Raw

from octopis.model import BrokerId
from octopis.routing.messages import Routed
from octopis.wire.bodies import BodyDecoder, encode
from octopis.wire.frames import Kind
from octopis.wire.published import Published, PublishedBody, decode_published, make_published
from octopis.wire.subscriptions import decode_bits, encode_bits


class _Headed(msgspec.Struct, frozen=True, array_like=True):
    cbv_p: bytes
    bids: list[BrokerId]
    notification: PublishedBody


class _HeadedRaw(msgspec.Struct, frozen=True, array_like=True):
    cbv_p: bytes
    bids: list[BrokerId]
    notification: Raw


_headed = BodyDecoder[list[_Headed]](list[_Headed], "a batch of notifications")
_headed_raw = BodyDecoder[list[_HeadedRaw]](list[_HeadedRaw], "a batch of notifications")
_ARRAY_OF_3 = b"\x93"


def encode_routed(routed: Routed) -> tuple[Kind, bytes]:
    """Return a notification as an item of ROUTED or, where it has a header, of HEADED."""
    notification = routed.notification
    assert isinstance(notification, Published), "only what came over the wire is sent on"
    if not routed.cbv_p and not routed.bids:
        return Kind.ROUTED, notification.encoded
    header = encode(encode_bits(routed.cbv_p)) + encode(routed.bids)
    return Kind.HEADED, _ARRAY_OF_3 + header + notification.encoded


def decode_routed(body: bytes | memoryview) -> list[Routed]:
    """Return the notifications of ROUTED, or raise ProtocolError."""
    return [Routed(notification) for notification in decode_published(body)]


def decode_headed(body: bytes | memoryview) -> list[Routed]:
    """Return the notifications of HEADED, or raise ProtocolError."""
    return [
        Routed(
            make_published(each.notification, bytes(raw.notification)),
            decode_bits(each.cbv_p),
            tuple(each.bids),
        )
        for each, raw in zip(_headed.decode(body), _headed_raw.decode(body), strict=True)
    ]
