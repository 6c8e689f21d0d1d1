import pytest

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector, Notification
from octopis.core.routing.messages import (
    HostState,
    NotificationMessage,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.wire.control import Goodbye, Notice, Ping, Pong, StatusRequest, encode_control
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind, encode
from octopis.core.wire.link import (
    LinkDecoder,
    decode_notifications,
    decode_with_targets,
    encode_message,
    encode_notification,
    frames_of,
)
from octopis.core.wire.published import decode_published, encode_published
from octopis.errors import ProtocolError

HOST = BrokerId("a", 0)
(ONE,) = decode_published(b"\x91" + encode_published({"x": 1}, b"payload", "me", 1, 2))
SUBSCRIBE = Subscribe(Subscription("s", parse_filter("x > 1")), ClusterBitVector(1), HOST)
MESSAGES = [
    SUBSCRIBE,
    Unsubscribe("s"),
    NotificationMessage(ONE),
    NotificationMessage(ONE),
    NotificationMessage(ONE, ClusterBitVector(2)),
    TableSnapshot((SUBSCRIBE,)),
    NotificationMessage(ONE),
    HostState(HOST, 1, 2, ()),
]


def test_neighbours_of_one_kind_share_a_frame_and_order_is_kept():
    data = b"".join(frames_of([encode_message(message) for message in MESSAGES]))
    frames = FrameDecoder().receive_data(data)
    assert [frame.kind for frame in frames] == [
        FrameKind.CHANGES,
        FrameKind.NOTIFICATIONS,
        FrameKind.NOTIFICATIONS_WITH_TARGETS,
        FrameKind.SNAPSHOT,
        FrameKind.NOTIFICATIONS,
        FrameKind.HOST_STATE,
    ]
    decoder = LinkDecoder()
    assert [message for frame in frames for message in decoder.decode(frame)] == MESSAGES


@pytest.mark.parametrize(
    "control", [Ping(), Pong(), Goodbye("done"), Notice(HOST, "one", 3, holds=False)]
)
def test_control_messages_come_one_by_one(control):
    (frame,) = FrameDecoder().receive_data(encode_control(control))
    assert LinkDecoder().decode(frame) == control


@pytest.mark.parametrize(
    "frame",
    [
        Frame(FrameKind.PUBLISH, b""),
        Frame(FrameKind.HELLO, b"\x80"),
        Frame(99, b""),
        FrameDecoder().receive_data(encode_control(StatusRequest(1)))[0],
    ],
)
def test_what_does_not_belong_on_a_link_is_a_protocol_error(frame: Frame):
    with pytest.raises(ProtocolError, match="does not belong on a link"):
        LinkDecoder().decode(frame)


def test_ordinary_notification_is_the_publishers_bytes_and_nothing_else():
    kind, item = encode_notification(NotificationMessage(ONE))
    assert (kind, item) == (FrameKind.NOTIFICATIONS, ONE.encoded)
    assert item is ONE.encoded
    assert decode_notifications(b"\x91" + item) == [NotificationMessage(ONE)]


@pytest.mark.parametrize(
    "routed",
    [
        NotificationMessage(ONE, ClusterBitVector(6)),
        NotificationMessage(ONE, ClusterBitVector(1 << 80)),
        NotificationMessage(ONE, targets=1 << 74 | 1),
    ],
)
def test_header_stands_before_the_same_bytes(routed: NotificationMessage):
    kind, item = encode_notification(routed)
    assert kind == FrameKind.NOTIFICATIONS_WITH_TARGETS
    assert item.endswith(ONE.encoded)
    assert len(item) < len(ONE.encoded) + 25
    (found,) = decode_with_targets(b"\x91" + item)
    assert found == routed
    assert found.notification.encoded == ONE.encoded


def test_what_did_not_come_over_the_wire_is_a_fault_of_ours():
    with pytest.raises(AssertionError):
        encode_notification(NotificationMessage(Notification({"x": 1})))


@pytest.mark.parametrize("decode", [decode_notifications, decode_with_targets])
def test_damaged_batch_is_a_protocol_error(decode):
    with pytest.raises(ProtocolError, match="a batch of notifications cannot be read"):
        decode(encode([[b"", []]]))
