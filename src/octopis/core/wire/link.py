"""What neighbours say to each other: routing messages to frames, and frames to routing messages.

A notification crosses as the publisher's own bytes, after a small header (CBV_p and BIDs) where it
has one; those of target routing have another (targeted.py). Clients never come here: this module
needs the routing messages, theirs do not.
"""

from collections.abc import Callable
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter

import msgspec
from msgspec import Raw

from octopis.core.model import ClusterBitVector
from octopis.core.routing.messages import (
    HostState,
    HostTable,
    Message,
    NotificationMessage,
    TableSnapshot,
)
from octopis.core.topology import SCOT
from octopis.core.wire.control import Goodbye, Notice, Ping, Pong, decode_control
from octopis.core.wire.frames import BodyDecoder, Frame, FrameKind, encode, encode_items
from octopis.core.wire.inquiries import Asking, decode_asking
from octopis.core.wire.posts import Posts, decode_posts
from octopis.core.wire.published import Published, PublishedBody, decode_published, make_published
from octopis.core.wire.subscriptions import (
    Assembler,
    decode_bits,
    decode_changes,
    decode_host_table,
    decode_snapshot,
    encode_bits,
    encode_change,
    encode_host_state,
    encode_host_table,
    encode_snapshot,
    in_parts,
)
from octopis.core.wire.targeted import TargetedDecoder
from octopis.errors import ProtocolError


class _WithTargets(msgspec.Struct, frozen=True, array_like=True):
    cbv_p: bytes
    targets: bytes
    notification: PublishedBody


class _WithTargetsRaw(msgspec.Struct, frozen=True, array_like=True):
    cbv_p: bytes
    targets: bytes
    notification: Raw


_with_targets = BodyDecoder[list[_WithTargets]](list[_WithTargets], "a batch of notifications")
_with_targets_raw = BodyDecoder[list[_WithTargetsRaw]](
    list[_WithTargetsRaw], "a batch of notifications"
)
_ARRAY_OF_3 = b"\x93"


def encode_notification(routed: NotificationMessage) -> tuple[FrameKind, bytes]:
    """Return a notification as an item of its kind of frame: with a header, or without."""
    notification = routed.notification
    assert isinstance(notification, Published), "only what came over the wire is sent on"
    if not routed.cbv_p and not routed.targets:
        return FrameKind.NOTIFICATIONS, notification.encoded
    header = encode(encode_bits(routed.cbv_p)) + encode(encode_bits(routed.targets))
    return FrameKind.NOTIFICATIONS_WITH_TARGETS, _ARRAY_OF_3 + header + notification.encoded


def decode_notifications(body: bytes | memoryview) -> list[NotificationMessage]:
    """Return the notifications of NOTIFICATIONS, or raise ProtocolError."""
    return [NotificationMessage(notification) for notification in decode_published(body)]


def decode_with_targets(body: bytes | memoryview) -> list[NotificationMessage]:
    """Return the notifications of NOTIFICATIONS_WITH_TARGETS, or raise ProtocolError."""
    return [
        NotificationMessage(
            make_published(each.notification, bytes(raw.notification)),
            ClusterBitVector(decode_bits(each.cbv_p)),
            decode_bits(each.targets),
        )
        for each, raw in zip(
            _with_targets.decode(body), _with_targets_raw.decode(body), strict=True
        )
    ]


Encoded = tuple[FrameKind, bytes]
"""A message as it waits in a queue: an item of a frame, or (a table) all its frames."""

LinkControl = Ping | Pong | Goodbye | Notice | Asking | Posts

_WHOLE_FRAMES = (FrameKind.SNAPSHOT, FrameKind.HOST_STATE, FrameKind.HOST_TABLE)
"""Kinds of messages that are encoded as all their frames, not as items of one."""


def encode_message(message: Message) -> Encoded:
    """Return a routing message as it waits in a queue; those of target routing: `targeted`."""
    if isinstance(message, NotificationMessage):
        return encode_notification(message)
    if isinstance(message, TableSnapshot):
        return FrameKind.SNAPSHOT, encode_snapshot(message)
    if isinstance(message, HostState):
        return FrameKind.HOST_STATE, b"".join(encode_host_state(message))
    if isinstance(message, HostTable):
        return FrameKind.HOST_TABLE, encode_host_table(message)
    return FrameKind.CHANGES, encode_change(message)


def frames_of(messages: list[Encoded]) -> list[bytes]:
    """Return messages as frames: neighbours of one kind share one."""
    frames = []
    for kind, run in groupby(messages, itemgetter(0)):
        items = [item for _, item in run]
        if kind in _WHOLE_FRAMES:
            frames += items
        elif kind == FrameKind.CHANGES:
            frames += [encode_items(kind, part) for _, part in in_parts(items, len)]
        else:
            frames.append(encode_items(kind, items))
    return frames


class LinkDecoder:
    """Turns the frames of a neighbour into what it said, in order.

    `targeted` reads notifications of target routing; without it there are none on the link.
    """

    def __init__(self, targeted: TargetedDecoder | None = None) -> None:
        self._assembler = Assembler()
        self._readers: dict[int, Callable[[bytes | memoryview], list[Message]]] = {
            FrameKind.NOTIFICATIONS: lambda body: [*decode_notifications(body)],
            FrameKind.NOTIFICATIONS_WITH_TARGETS: lambda body: [*decode_with_targets(body)],
            FrameKind.CHANGES: decode_changes,
            FrameKind.SNAPSHOT: lambda body: [decode_snapshot(body)],
            FrameKind.HOST_STATE: self._host_state,
            FrameKind.HOST_TABLE: lambda body: [decode_host_table(body)],
        }
        if targeted is not None:
            self._readers[targeted.kind] = lambda body: [*targeted.decode(body)]

    def decode(self, frame: Frame) -> list[Message] | LinkControl:
        """Return routing messages or a control message, or raise ProtocolError."""
        read = self._readers.get(frame.kind)
        if read is not None:
            return read(frame.body)
        control = decode_posts(frame) or decode_asking(frame) or decode_control(frame)
        if not isinstance(control, LinkControl):
            raise ProtocolError(f"a frame of kind {frame.kind} does not belong on a link")
        return control

    def _host_state(self, body: bytes | memoryview) -> list[Message]:
        state = self._assembler.host_state(body)
        return [] if state is None else [state]


def overlay_digest(scot: SCOT) -> str:
    """Return a short text that is the same for equal overlays, and for no others."""
    edges = sorted(sorted(edge) for edge in scot.acyclic.edges)
    facts = (sorted(scot.regions), edges, len(scot.clusters))
    return blake2b(encode(facts), digest_size=12).hexdigest()
