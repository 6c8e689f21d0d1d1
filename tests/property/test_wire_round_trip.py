"""Every message comes back as it was sent, however the bytes are split on their way."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from octopis.core.routing.messages import NotificationMessage
from octopis.core.wire.client import (
    AnswerItem,
    Consumed,
    GapNotice,
    PublishRequest,
    SettledRequest,
    SubscribeRequest,
    UnsubscribeRequest,
    decode_from_client,
    decode_to_client,
    encode_answers,
    encode_delivery,
    encode_gap,
    encode_publish,
    encode_request,
)
from octopis.core.wire.control import (
    Goodbye,
    Notice,
    Ping,
    Pong,
    Refusal,
    Status,
    StatusRequest,
    decode_control,
    encode_control,
)
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind, encode_items
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
from octopis.core.wire.link import LinkDecoder, encode_message, frames_of
from octopis.core.wire.login import (
    MESSAGE_MAX,
    Challenge,
    Proof,
    Scram,
    Token,
    decode_proof,
    encode_challenge,
    encode_proof,
)
from octopis.core.wire.published import Published, decode_checked
from support.wire_strategies import (
    askings,
    attributes,
    broker_ids,
    counts,
    messages,
    notifications,
    published,
    steps,
    texts,
)


def frames_from(data: bytes, cuts: list[int]) -> list[Frame]:
    """Return the frames of `data`, which arrives in pieces."""
    decoder = FrameDecoder()
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    found: list[Frame] = []
    for start, end in itertools.pairwise(places):
        found += decoder.receive_data(data[start:end])
    assert decoder.pending == 0
    return found


splits = st.lists(st.integers(0, 2**16), max_size=30)


@given(st.lists(messages, max_size=12), splits)
def test_routing_messages(sent: list, cuts: list[int]):
    data = b"".join(frames_of([encode_message(message) for message in sent]))
    decoder = LinkDecoder()
    found = []
    for frame in frames_from(data, cuts):
        said = decoder.decode(frame)
        assert isinstance(said, list)
        found += said
    assert found == sent


@given(st.lists(askings, max_size=8), splits)
def test_inquiries_and_what_answers_them(sent: list, cuts: list[int]):
    data = b"".join(map(encode_asking, sent))
    decoder = LinkDecoder()
    assert [decoder.decode(frame) for frame in frames_from(data, cuts)] == sent


@given(notifications)
def test_notification_is_passed_on_byte_by_byte(notification: Published):
    assert encode_message(NotificationMessage(notification)) == (
        FrameKind.NOTIFICATIONS,
        notification.encoded,
    )


facts = st.dictionaries(texts, texts | st.integers(-9, 9) | st.booleans() | st.none(), max_size=4)
refusals = st.builds(Refusal, texts, texts, facts)
controls = st.one_of(
    st.just(Ping()),
    st.just(Pong()),
    st.builds(Goodbye, texts),
    st.builds(Notice, broker_ids, texts.filter(bool), steps, st.booleans(), changes=st.booleans()),
    st.builds(StatusRequest, counts),
    st.builds(Status, counts, st.dictionaries(texts, texts | st.integers(-9, 9) | st.none())),
)


@given(st.lists(controls, max_size=8), splits)
def test_control_messages(sent: list, cuts: list[int]):
    data = b"".join(map(encode_control, sent))
    assert [decode_control(frame) for frame in frames_from(data, cuts)] == sent


requests = st.one_of(
    st.builds(SubscribeRequest, counts, counts, texts.filter(bool), texts, texts, counts),
    st.builds(UnsubscribeRequest, counts, texts),
    st.builds(SettledRequest, counts, st.integers(0, 3_600_000)),
    st.builds(Consumed, counts),
)


@given(st.lists(requests, max_size=8), splits)
def test_requests_of_clients(sent: list, cuts: list[int]):
    data = b"".join(map(encode_request, sent))
    assert [decode_from_client(frame) for frame in frames_from(data, cuts)] == sent


@given(counts, st.lists(notifications, max_size=8), splits)
def test_publications(request: int, sent: list, cuts: list[int]):
    data = encode_publish(request, [each.encoded for each in sent])
    (frame,) = frames_from(data, cuts)
    found = decode_from_client(frame)
    assert isinstance(found, PublishRequest)
    assert found.request == request
    for each in sent[:1]:
        same = [one for one in sent if one.publisher == each.publisher]
        if same == sent:
            assert decode_checked(found.notifications, each.publisher) == sent


@given(
    st.lists(st.tuples(st.lists(counts, min_size=1, max_size=9), notifications), max_size=8),
    splits,
)
def test_deliveries(sent: list, cuts: list[int]):
    items = [encode_delivery(numbers, each.encoded) for numbers, each in sent]
    (frame,) = frames_from(encode_items(FrameKind.DELIVER, items), cuts)
    found = decode_to_client(frame)
    assert isinstance(found, list)
    assert len(found) == len(sent)
    for (numbers, each), delivery in zip(sent, found, strict=True):
        assert delivery.numbers == numbers
        body = delivery.notification
        assert (body.attributes, body.payload) == (each.attributes, each.payload)
        assert (body.publisher, body.sequence) == (each.publisher, each.sequence)
        assert body.intended_ns == each.intended_ns


@given(st.lists(st.builds(AnswerItem, counts, refusals | st.none()), min_size=1), splits)
def test_answers(sent: list, cuts: list[int]):
    data = encode_answers(sent)
    (frame,) = frames_from(data + encode_gap(7), cuts)[:1]
    assert decode_to_client(frame) == sent


@given(counts)
def test_gap_notices(dropped: int):
    (frame,) = frames_from(encode_gap(dropped), [])
    assert decode_to_client(frame) == GapNotice(dropped)


names = texts.filter(lambda name: name and name.isprintable())
logins = st.none() | st.builds(Token, texts) | st.builds(Scram, texts, st.binary(max_size=50))
hellos = st.one_of(
    st.builds(BrokerHello, broker_ids, broker_ids, texts, texts),
    st.builds(ClientHello, names, st.integers(1, 2**32), st.integers(0, 2**32), login=logins),
)


@given(hellos, splits)
def test_hellos(hello, cuts: list[int]):
    (frame,) = frames_from(encode_hello(hello), cuts)
    assert decode_hello(frame) == hello
    assert decode_answer(frame) == hello


@given(st.binary(max_size=MESSAGE_MAX), splits)
def test_what_is_asked_and_answered_in_a_login(message: bytes, cuts: list[int]):
    first, second = frames_from(encode_challenge(message) + encode_proof(message), cuts)
    assert decode_answer(first) == Challenge(message)
    assert decode_proof(second) == Proof(message)


@given(st.builds(Welcome, broker_ids, counts, counts), refusals, splits)
def test_answers_to_a_hello(welcome: Welcome, refusal: Refusal, cuts: list[int]):
    first, second = frames_from(encode_welcome(welcome) + encode_refusal(refusal), cuts)
    assert decode_answer(first) == welcome
    assert decode_answer(second) == refusal


@given(attributes)
def test_attributes_keep_their_types(found: dict):
    back = published(found, b"", "p", 1, 1).attributes
    assert {name: type(value) for name, value in back.items()} == {
        name: type(value) for name, value in found.items()
    }
