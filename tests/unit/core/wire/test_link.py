import pytest

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import (
    HostState,
    NotificationMessage,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.wire.control import Goodbye, Notice, Ping, Pong, StatusRequest, encode_control
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind
from octopis.core.wire.link import LinkDecoder, encode_message, frames_of
from octopis.core.wire.published import decode_published, encode_published
from octopis.errors import ProtocolError

HOST = BrokerId("a", 0)
(ONE,) = decode_published(b"\x91" + encode_published({"x": 1}, b"", "me", 1, 2))
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


@pytest.mark.parametrize("control", [Ping(), Pong(), Goodbye("done"), Notice(HOST, 3, holds=False)])
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
