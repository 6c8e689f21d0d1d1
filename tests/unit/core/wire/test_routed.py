import pytest

from octopis.core.model import ClusterBitVector, Notification
from octopis.core.routing.messages import NotificationMessage
from octopis.core.wire.frames import FrameKind, encode
from octopis.core.wire.link import decode_headed, decode_routed, encode_routed
from octopis.core.wire.published import decode_published, encode_published
from octopis.errors import ProtocolError

(ONE,) = decode_published(b"\x91" + encode_published({"x": 1}, b"payload", "me", 1, 2))


def test_ordinary_notification_is_the_publishers_bytes_and_nothing_else():
    kind, item = encode_routed(NotificationMessage(ONE))
    assert (kind, item) == (FrameKind.NOTIFICATIONS, ONE.encoded)
    assert item is ONE.encoded
    assert decode_routed(b"\x91" + item) == [NotificationMessage(ONE)]


@pytest.mark.parametrize(
    "routed",
    [
        NotificationMessage(ONE, ClusterBitVector(6)),
        NotificationMessage(ONE, ClusterBitVector(1 << 80)),
        NotificationMessage(ONE, bids=1 << 74 | 1),
    ],
)
def test_header_stands_before_the_same_bytes(routed: NotificationMessage):
    kind, item = encode_routed(routed)
    assert kind == FrameKind.NOTIFICATIONS_WITH_TARGETS
    assert item.endswith(ONE.encoded)
    assert len(item) < len(ONE.encoded) + 25
    (found,) = decode_headed(b"\x91" + item)
    assert found == routed
    assert found.notification.encoded == ONE.encoded


def test_what_did_not_come_over_the_wire_is_a_fault_of_ours():
    with pytest.raises(AssertionError):
        encode_routed(NotificationMessage(Notification({"x": 1})))


@pytest.mark.parametrize("decode", [decode_routed, decode_headed])
def test_damaged_batch_is_a_protocol_error(decode):
    with pytest.raises(ProtocolError, match="a batch of notifications cannot be read"):
        decode(encode([[b"", []]]))
