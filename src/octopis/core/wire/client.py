"""What a client and its host broker say to each other.

Deliveries name the matching subscriptions by small numbers that the client chose when it
subscribed, so that a notification crosses once however many subscriptions of the client match.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from octopis.core.model import BrokerId
from octopis.core.wire.control import (
    Goodbye,
    Ping,
    Pong,
    Refusal,
    Status,
    StatusRequest,
    decode_control,
)
from octopis.core.wire.durable import (
    DurableAnswer,
    DurableBatch,
    DurableRequest,
    decode_batch,
    decode_durable_answer,
    decode_durable_request,
)
from octopis.core.wire.frames import BodyDecoder, Frame, FrameKind, encode, encode_frame
from octopis.core.wire.moving import MoveAnswer, decode_move_answer
from octopis.core.wire.published import PublishedBody
from octopis.errors import ProtocolError

_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_ARRAY_OF_2 = b"\x92"
_REQUEST_BYTES = 8
SETTLED_MS_MAX = 3_600_000


class SubscribeRequest(msgspec.Struct, frozen=True):
    """A wish to get what `filter` (a filter in `dialect`) says, as subscription `id`.

    Deliveries will name it as `number`. `epoch` counts how often the client has moved.
    """

    request: _Count
    number: _Count
    id: Annotated[str, Meta(min_length=1, max_length=255)]
    filter: str
    dialect: str
    epoch: _Count


class UnsubscribeRequest(msgspec.Struct, frozen=True):
    """A wish to get no more of a subscription."""

    request: _Count
    id: str


class SettledRequest(msgspec.Struct, frozen=True):
    """A wish to hear when every living broker knows all subscriptions made before.

    The answer is a refusal (NotSettled) where that takes more than `limit_ms`.
    """

    request: _Count
    limit_ms: Annotated[int, Meta(ge=0, le=SETTLED_MS_MAX)]


class PublishRequest(msgspec.Struct, frozen=True):
    """Notifications to publish, still encoded: an array as `decode_checked` reads it."""

    request: int
    notifications: bytes | memoryview


class Consumed(msgspec.Struct, frozen=True):
    """The client has consumed so many deliveries, its backlog at the hello included."""

    deliveries: _Count


class AnswerItem(msgspec.Struct, frozen=True, array_like=True):
    """How a request went.

    Of publications, `unsent` copies could not go where they were for, as links are down; and the
    broker has not heard of `unheard` neighbours since it has started, and may lack subscriptions.
    """

    request: int
    refusal: Refusal | None = None
    unsent: int = 0
    unheard: int = 0


class Delivery(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A notification, and the numbers of the client's subscriptions that match."""

    numbers: list[int]
    notification: PublishedBody


class GapNotice(msgspec.Struct, frozen=True):
    """So many deliveries were dropped here, because the client was too slow."""

    dropped: int


class MissedNotice(msgspec.Struct, frozen=True):
    """Notifications published at `host` have not come, and will not; `count`, if that is known."""

    host: BrokerId
    count: int | None = None


class LostNotice(msgspec.Struct, frozen=True):
    """The subscription with this number is another connection's now; no more comes of it."""

    number: int
    reason: str


ClientControl = Ping | Pong | Goodbye | StatusRequest
Change = SubscribeRequest | UnsubscribeRequest | SettledRequest
"""What a broker does in the order of a client's wishes."""

FromClient = Change | PublishRequest | Consumed | DurableRequest | ClientControl
ToClient = (
    list[AnswerItem]
    | list[Delivery]
    | GapNotice
    | MissedNotice
    | LostNotice
    | DurableAnswer
    | DurableBatch
    | MoveAnswer
    | Ping
    | Pong
    | Goodbye
    | Status
)

_subscribe = BodyDecoder[SubscribeRequest](SubscribeRequest, "a subscribe request")
_unsubscribe = BodyDecoder[UnsubscribeRequest](UnsubscribeRequest, "an unsubscribe request")
_settled = BodyDecoder[SettledRequest](SettledRequest, "a settled request")
_consumed = BodyDecoder[Consumed](Consumed, "a count of deliveries")
_answers = BodyDecoder[list[AnswerItem]](list[AnswerItem], "an answer")
_deliveries = BodyDecoder[list[Delivery]](list[Delivery], "a batch of deliveries")
_gap = BodyDecoder[GapNotice](GapNotice, "a gap notice")
_missed = BodyDecoder[MissedNotice](MissedNotice, "a notice of missed notifications")
_lost = BodyDecoder[LostNotice](LostNotice, "a notice of a lost subscription")


def encode_request(request: Change | Consumed) -> bytes:
    """Return the frame of a client's request."""
    kinds = {
        SubscribeRequest: FrameKind.SUBSCRIBE,
        UnsubscribeRequest: FrameKind.UNSUBSCRIBE,
        SettledRequest: FrameKind.SETTLED,
        Consumed: FrameKind.CONSUMED,
    }
    return encode_frame(kinds[type(request)], encode(request))


def encode_publish(request: int, notifications: list[bytes]) -> bytes:
    """Return the frame that publishes notifications, each encoded already."""
    # The number stands before the array, so that the array can be passed on as one view.
    head = request.to_bytes(_REQUEST_BYTES, "big")
    array = b"\xdd" + len(notifications).to_bytes(4, "big")
    return encode_frame(FrameKind.PUBLISH, b"".join([head, array, *notifications]))


def encode_answers(answers: list[AnswerItem]) -> bytes:
    """Return the frame of answers."""
    return encode_frame(FrameKind.ANSWERS, encode(answers))


def encode_delivery(numbers: list[int], encoded: bytes) -> bytes:
    """Return a delivery as an item of DELIVER."""
    return _ARRAY_OF_2 + encode(numbers) + encoded


def encode_gap(dropped: int) -> bytes:
    """Return the frame of a gap notice."""
    return encode_frame(FrameKind.GAP, encode(GapNotice(dropped)))


def encode_missed(host: BrokerId, count: int | None) -> bytes:
    """Return the frame that tells of missed notifications."""
    return encode_frame(FrameKind.MISSED, encode(MissedNotice(host, count)))


def encode_lost(number: int, reason: str) -> bytes:
    """Return the frame that tells of a lost subscription."""
    return encode_frame(FrameKind.LOST, encode(LostNotice(number, reason)))


_FROM_CLIENT: dict[int, Callable[[bytes | memoryview], FromClient]] = {
    FrameKind.CONSUMED: _consumed.decode,
    FrameKind.SUBSCRIBE: _subscribe.decode,
    FrameKind.UNSUBSCRIBE: _unsubscribe.decode,
    FrameKind.SETTLED: _settled.decode,
    FrameKind.DURABLE: decode_durable_request,
}
_TO_CLIENT: dict[int, Callable[[bytes | memoryview], ToClient]] = {
    FrameKind.DELIVER: _deliveries.decode,
    FrameKind.ANSWERS: _answers.decode,
    FrameKind.GAP: _gap.decode,
    FrameKind.MISSED: _missed.decode,
    FrameKind.LOST: _lost.decode,
    FrameKind.DURABLES: decode_durable_answer,
    FrameKind.BATCH: decode_batch,
    FrameKind.MOVING: decode_move_answer,
}


def decode_from_client(frame: Frame) -> FromClient:
    """Return what a client asks for, or raise ProtocolError."""
    kind, body = frame
    if kind == FrameKind.PUBLISH:
        if len(body) < _REQUEST_BYTES:
            raise ProtocolError("a publish request is cut short")
        return PublishRequest(int.from_bytes(body[:_REQUEST_BYTES], "big"), body[_REQUEST_BYTES:])
    if kind in _FROM_CLIENT:
        return _FROM_CLIENT[kind](body)
    control = decode_control(frame)
    if not isinstance(control, ClientControl):
        raise ProtocolError(f"a client does not send frames of kind {kind}")
    return control


def decode_to_client(frame: Frame) -> ToClient:
    """Return what a broker says to its client, or raise ProtocolError."""
    kind, body = frame
    if kind in _TO_CLIENT:
        return _TO_CLIENT[kind](body)
    control = decode_control(frame)
    if not isinstance(control, Ping | Pong | Goodbye | Status):
        raise ProtocolError(f"a broker does not send frames of kind {kind} to a client")
    return control
