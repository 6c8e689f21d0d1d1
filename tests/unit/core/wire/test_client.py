import pytest

from octopis.core.wire.client import (
    AnswerItem,
    Consumed,
    Delivery,
    GapNotice,
    PublishRequest,
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
from octopis.core.wire.control import Notice, Ping, Refusal, Status, StatusRequest, encode_control
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind, encode, encode_items
from octopis.core.wire.published import decode_checked, encode_published
from octopis.errors import ProtocolError

ONE = encode_published({"x": 1}, b"payload", "me", 1, 2)


def frame_of(data: bytes) -> Frame:
    (frame,) = FrameDecoder().receive_data(data)
    return frame


@pytest.mark.parametrize(
    "request_",
    [
        SubscribeRequest(1, 2, "me/2", "x > 1", "sql", 4),
        UnsubscribeRequest(2, "me/2"),
        Consumed(100),
    ],
)
def test_request_comes_back(request_):
    assert decode_from_client(frame_of(encode_request(request_))) == request_


def test_publications_come_as_they_were_encoded():
    found = decode_from_client(frame_of(encode_publish(9, [ONE, ONE])))
    assert isinstance(found, PublishRequest)
    assert found.request == 9
    assert [each.encoded for each in decode_checked(found.notifications, "me")] == [ONE, ONE]


def test_delivery_names_all_matching_subscriptions_in_one_frame():
    items = [encode_delivery([1, 70_000], ONE), encode_delivery([5], ONE)]
    first, second = decode_to_client(frame_of(encode_items(FrameKind.DELIVER, items)))
    assert isinstance(first, Delivery)
    assert (first.numbers, second.numbers) == ([1, 70_000], [5])
    assert first.notification.attributes == {"x": 1}


def test_answers_and_gaps_and_status():
    answers = [AnswerItem(1), AnswerItem(2, Refusal("InvalidFilter", "no", {"column": 3}))]
    data = encode_answers(answers)
    assert decode_to_client(frame_of(data)) == answers
    assert decode_to_client(frame_of(encode_gap(12))) == GapNotice(12)
    status = Status(1, {"ready": True})
    assert decode_to_client(frame_of(encode_control(status))) == status


@pytest.mark.parametrize(
    "frame",
    [
        Frame(FrameKind.DELIVER, b"\x90"),
        Frame(FrameKind.NOTIFICATIONS, b"\x90"),
        Frame(200, b""),
        frame_of(encode_control(Status(1, {}))),
        frame_of(encode_control(Notice(("a", 0), "one", 1, holds=True))),
    ],
)
def test_client_may_not_speak_like_a_broker(frame: Frame):
    with pytest.raises(ProtocolError, match="a client does not send frames of kind"):
        decode_from_client(frame)


@pytest.mark.parametrize(
    "frame", [Frame(FrameKind.PUBLISH, b""), frame_of(encode_control(StatusRequest(1)))]
)
def test_broker_may_not_speak_like_a_client(frame: Frame):
    with pytest.raises(ProtocolError, match="a broker does not send frames of kind"):
        decode_to_client(frame)


def test_both_may_ask_for_a_sign_of_life():
    frame = frame_of(encode_control(Ping()))
    assert decode_from_client(frame) == decode_to_client(frame) == Ping()


@pytest.mark.parametrize(
    "fields",
    [
        {"request": 1, "number": -1, "id": "s", "wanted": "x>1", "dialect": "sql", "epoch": 0},
        {"request": 1, "number": 1, "id": "", "wanted": "x>1", "dialect": "sql", "epoch": 0},
        {"request": 1, "number": 1, "id": "s" * 256, "wanted": "", "dialect": "", "epoch": 0},
        {"request": 1, "number": 1, "id": "s", "wanted": "x>1", "dialect": "sql"},
    ],
)
def test_subscribe_request_out_of_bounds_is_a_protocol_error(fields: dict):
    with pytest.raises(ProtocolError, match="a subscribe request cannot be read"):
        decode_from_client(Frame(FrameKind.SUBSCRIBE, encode(fields)))


def test_publish_request_that_is_cut_short_is_a_protocol_error():
    with pytest.raises(ProtocolError, match="cut short"):
        decode_from_client(Frame(FrameKind.PUBLISH, b"1234567"))
