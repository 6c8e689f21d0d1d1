import pytest

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import (
    Flooded,
    HostState,
    HostVersions,
    NotificationMessage,
    Refresh,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.wire import subscriptions
from octopis.core.wire.frames import FrameDecoder, FrameKind, encode, encode_items
from octopis.core.wire.link import encode_message, frames_of
from octopis.core.wire.subscriptions import (
    PART_MAX,
    Assembler,
    decode_bits,
    decode_changes,
    decode_snapshot,
    encode_bits,
    encode_change,
    encode_host_state,
    encode_snapshot,
    snapshot_parts,
)
from octopis.errors import ProtocolError

HOST = BrokerId("b", 2)
ONE = Subscription("me/1", parse_filter("price BETWEEN 5 AND 10 AND symbol = 'O''Neil'"), 3)


@pytest.mark.parametrize("bits", [0, 1, 5, 255, 256, 1 << 99])
def test_bit_vector_of_any_length_comes_back(bits: int):
    assert decode_bits(encode_bits(bits)) == bits


@pytest.mark.parametrize(
    "message",
    [
        Subscribe(ONE, ClusterBitVector(4), HOST),
        Unsubscribe("me/1"),
        Flooded(HOST, 2, 7, ONE, None),
        Flooded(HOST, 2, 8, None, "me/1"),
        HostVersions({HOST: (1, 2, 3), BrokerId("c", 0): (0, 0, 0)}),
        Refresh(HOST, 4),
    ],
    ids=lambda message: type(message).__name__,
)
def test_change_comes_back_equal(message):
    (frame,) = FrameDecoder().receive_data(
        encode_items(FrameKind.CHANGES, [encode_change(message)])
    )
    (found,) = decode_changes(frame.body)
    assert found == message
    assert type(found) is type(message)


def test_filter_crosses_as_its_canonical_text():
    assert str(ONE.filter).encode() in encode_change(Subscribe(ONE, ClusterBitVector(1), HOST))


def test_filter_that_cannot_be_read_is_a_protocol_error_that_names_the_subscription():
    body = encode([[1, ["me/1", "price >", 0], b"\x01", ["b", 2]]])
    with pytest.raises(ProtocolError, match="the filter of subscription 'me/1'"):
        decode_changes(body)


def test_empty_tables_cross_in_one_part():
    (part,) = snapshot_parts(TableSnapshot(()))
    snapshot = encode_snapshot(part)
    (state,) = encode_host_state(HostState(HOST, 1, 2, ()))
    first, second = FrameDecoder().receive_data(snapshot + state)
    assembler = Assembler()
    assert decode_snapshot(first.body) == TableSnapshot(())
    assert assembler.host_state(second.body) == HostState(HOST, 1, 2, ())


def test_large_tables_are_cut_into_parts_and_put_together():
    many = tuple(
        Subscription(f"client-{number}/1", parse_filter(f"x = {number % 50}"), number)
        for number in range(20_000)
    )
    snapshot = TableSnapshot(tuple(Subscribe(each, ClusterBitVector(1), HOST) for each in many))
    state = HostState(HOST, 1, 2, many)
    frames = [encode_snapshot(part) for part in snapshot_parts(snapshot)]
    frames += encode_host_state(state)
    assert len(frames) == 2 * -(-20_000 // PART_MAX)
    assembler = Assembler()
    parts, states = [], []
    for frame in FrameDecoder().receive_data(b"".join(frames)):
        if frame.kind == FrameKind.SNAPSHOT:
            parts.append(decode_snapshot(frame.body))
        else:
            states.append(assembler.host_state(frame.body))
    assert sum((part.subscriptions for part in parts), ()) == snapshot.subscriptions
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert states == [None] * (len(states) - 1) + [state]


def test_parts_without_an_end_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subscriptions, "TABLE_MAX", 100)
    state = HostState(HOST, 1, 2, (ONE,) * 101)
    assembler = Assembler()
    *parts, last = FrameDecoder().receive_data(b"".join(encode_host_state(state)))
    for part in parts:
        assembler.host_state(part.body)
    with pytest.raises(ProtocolError, match="a host has at most 100 subscriptions"):
        assembler.host_state(last.body)


@pytest.mark.parametrize("number", [-1, 2**62 + 1])
def test_numbers_that_cannot_be_are_refused(number: int):
    for body in (
        encode([[1, ["me/1", "price > 1", number], b"\x01", ["b", 2]]]),
        encode([[3, ["b", 2], number, 1, None, "x"]]),
        encode([[3, ["b", 2], 1, number, None, "x"]]),
    ):
        with pytest.raises(ProtocolError):
            decode_changes(body)


def test_a_notification_is_no_change():
    with pytest.raises(AssertionError):
        encode_change(NotificationMessage(None))  # type: ignore[arg-type]


def test_long_filters_have_frames_of_their_own_however_they_are_told():
    long = " OR ".join(f"name{number} = 1" for number in range(60))
    texts = ["x = 1", "x = 2", long, long, "x = 3"]
    many = [Subscription(f"me/{n}", parse_filter(text), 0) for n, text in enumerate(texts)]
    told = tuple(Subscribe(each, ClusterBitVector(1), HOST) for each in many)
    parts = [
        [s.subscription.id for s in p.subscriptions] for p in snapshot_parts(TableSnapshot(told))
    ]
    assert parts == [["me/0", "me/1"], ["me/2"], ["me/3"], ["me/4"]]
    assert len(encode_host_state(HostState(HOST, 1, 2, tuple(many)))) == 4
    assert len(frames_of([encode_message(each) for each in told])) == 4
