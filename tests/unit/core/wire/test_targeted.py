"""Target routing on the wire: a small header before the publisher's own bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.core.routing.messages import NotificationMessage
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind, encode
from octopis.core.wire.link import LinkDecoder, frames_of
from octopis.core.wire.published import decode_published, encode_published
from octopis.core.wire.targeted import TargetedDecoder, encode_targeted
from octopis.errors import ProtocolError
from support.wire_strategies import notifications

(ONE,) = decode_published(b"\x91" + encode_published({"x": 1}, b"payload", "me", 7, 9))
BROKERS, CLUSTERS = 75, 5


def read(*items: bytes, own: int = 0) -> list[NotificationMessage]:
    decoder = TargetedDecoder(1 << own, BROKERS, CLUSTERS)
    return decoder.decode(b"\xdd" + len(items).to_bytes(4, "big") + b"".join(items))


def header(targets: int, tried: int = 0) -> bytes:
    kind, item = encode_targeted(NotificationMessage(ONE, targets=targets, tried=tried))
    assert kind == FrameKind.TARGETED
    assert item.endswith(ONE.encoded)
    return item.removesuffix(ONE.encoded)


@given(
    st.lists(
        st.tuples(notifications, st.integers(1, 2**75 - 1), st.integers(0, 2**10 - 1)), max_size=5
    )
)
def test_copies_come_back_as_they_were_sent_where_they_are_for(sent):
    messages = [
        NotificationMessage(each, targets=targets | 1, tried=tried) for each, targets, tried in sent
    ]
    decoder = LinkDecoder(TargetedDecoder(1, BROKERS, CLUSTERS))
    frames = FrameDecoder().receive_data(b"".join(frames_of(list(map(encode_targeted, messages)))))
    assert [each for frame in frames for each in decoder.decode(frame)] == messages


@given(st.data(), st.integers(1, 2_040))
def test_header_is_two_bytes_for_each_target_and_four_or_a_bit_map_and_four(data, brokers: int):
    chosen = data.draw(st.sets(st.integers(0, brokers - 1), min_size=1))
    targets, tried = sum(1 << each for each in chosen), data.draw(st.integers(0, 63))
    size = len(header(targets, tried))
    assert size <= 2 * len(chosen) + 4
    assert size <= (brokers + 7) // 8 + 4


@given(st.sets(st.integers(0, 69_999), min_size=1, max_size=50), st.integers(0, 2**300))
def test_any_number_of_brokers_and_clusters_has_a_header(chosen: set[int], tried: int):
    targets = sum(1 << each for each in chosen)
    item = encode_targeted(NotificationMessage(ONE, targets=targets, tried=tried))[1]
    (found,) = TargetedDecoder(0, 70_000, 151).decode(b"\x91" + item)
    assert (found.targets, found.tried) == (targets, tried)


@pytest.mark.parametrize(
    ("targets", "bytes_"),
    [(1, 1), (1 << 74, 2), (1 << 74 | 1, 4), (2**75 - 1, 10), (0b11 << 30, 4)],
)
def test_targets_take_the_shorter_of_a_bit_map_and_a_list(targets: int, bytes_: int):
    assert len(header(targets)) == bytes_ + 4
    item = encode_targeted(NotificationMessage(ONE, targets=targets))[1]
    assert [each.targets for each in read(item)] == [targets]


def test_numbers_past_two_bytes_are_a_bit_map():
    targets = 1 << 65_536
    assert len(header(targets)) > 65_536 // 8
    item = encode_targeted(NotificationMessage(ONE, targets=targets))[1]
    (found,) = TargetedDecoder(1, 70_000, 3).decode(b"\x91" + item)
    assert found.targets == targets


def test_who_is_no_target_leaves_the_content_alone_and_passes_the_bytes_on():
    item = encode_targeted(NotificationMessage(ONE, targets=0b10))[1]
    (passing,) = read(item, own=0)
    assert (passing.notification.attributes, passing.notification.payload) == ({}, b"")
    notification = passing.notification
    assert (notification.publisher, notification.sequence, notification.intended_ns) == ("me", 7, 9)
    assert encode_targeted(passing)[1] == item
    (arrived,) = read(item, own=1)
    assert arrived.notification == ONE


def bad(targets: int) -> bytes:
    """Return an item whose attributes are none."""
    return header(targets) + encode(("no map", b"", "me", 1, 2))


def test_content_that_a_target_cannot_read_is_counted_and_the_rest_is_read():
    good = encode_targeted(NotificationMessage(ONE, targets=1))[1]
    decoder = TargetedDecoder(1, BROKERS, CLUSTERS)
    found = decoder.decode(b"\x93" + good + bad(1) + good)
    assert [each.notification for each in found] == [ONE, ONE]
    assert decoder.unreadable == 1


def test_who_is_no_target_does_not_see_that_content_makes_no_sense():
    decoder = TargetedDecoder(1, BROKERS, CLUSTERS)
    (passing,) = decoder.decode(b"\x91" + bad(0b10))
    assert decoder.unreadable == 0
    assert encode_targeted(passing)[1] == bad(0b10)


def test_what_is_no_notification_at_all_goes_no_further():
    decoder = TargetedDecoder(1, BROKERS, CLUSTERS)
    assert decoder.decode(b"\x91" + header(0b10) + encode([1, 2])) == []
    assert decoder.unreadable == 1


@pytest.mark.parametrize(
    ("head", "targets"),
    [
        (0, (1 << 75).to_bytes(10, "little")),
        (0, bytes(11)),
        (1, b"\x4b\x00"),  # number 75 of 75
        (1, b"\x01"),
        (1, b"\x01\x00" * 6),
        (1 << 11, b"\x01"),
        (b"\x00" * 40 + b"\x01", b"\x01"),
        (-2, b"\x01"),
    ],
)
def test_header_that_cannot_be_is_a_protocol_error(head, targets: bytes):
    with pytest.raises(ProtocolError, match=r"target|not there"):
        read(b"\x93" + encode(head) + encode(targets) + ONE.encoded)


def test_without_target_routing_such_a_frame_does_not_belong_on_a_link():
    with pytest.raises(ProtocolError, match="does not belong on a link"):
        LinkDecoder().decode(Frame(FrameKind.TARGETED, b"\x90"))
