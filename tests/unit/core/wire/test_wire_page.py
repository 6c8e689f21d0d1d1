"""The page on the wire says what the code does: kinds, fields, limits and an example in bytes."""

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec import inspect
from msgspec.structs import fields

from octopis.broker.clients import answers
from octopis.broker.links import settling
from octopis.broker.settings import Limits
from octopis.core.filters.tree import LENGTH_MAX
from octopis.core.model import BrokerId, notification
from octopis.core.wire import client, control, durable, greeting, login, moving
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind, encode_items
from octopis.core.wire.published import PUBLISH_MAX, PublishedBody
from octopis.errors import ProtocolError
from support.wire_page import Said, conversation

PAGE = (Path(__file__).parents[4] / "docs" / "wire.md").read_text(encoding="utf-8")

MESSAGES: dict[str, type] = {
    "HELLO": greeting.ClientHello,
    "WELCOME": greeting.Welcome,
    "login by token": login.Token,
    "login by password": login.Scram,
    "CHALLENGE": login.Challenge,
    "PROOF": login.Proof,
    "REFUSED": control.Refusal,
    "GOODBYE": control.Goodbye,
    "SUBSCRIBE": client.SubscribeRequest,
    "UNSUBSCRIBE": client.UnsubscribeRequest,
    "CONSUMED": client.Consumed,
    "STATUS_REQUEST": control.StatusRequest,
    "STATUS": control.Status,
    "DURABLE open": durable.OpenDurable,
    "DURABLE read": durable.ReadDurable,
    "DURABLE ack": durable.AckDurable,
    "DURABLE drop": durable.DropDurable,
    "DURABLE list": durable.ListDurables,
    "DURABLE stage": durable.StageRows,
    "DURABLE commit": durable.CommitStaged,
    "DURABLE unstage": durable.DropStaged,
    "DURABLE join": moving.JoinDurable,
    "DURABLE pass": moving.PassDurable,
    "DURABLE leave": moving.LeaveDurable,
    "DURABLE copy": moving.CopyDurable,
    "DURABLE begin": moving.BeginDurable,
    "DURABLE take": moving.TakeDurable,
    "DURABLE finish": moving.FinishDurable,
    "DURABLE forget": moving.ForgetDurable,
    "MOVING pass": moving.Passage,
    "MOVING left": moving.Left,
    "MOVING copy": moving.Excerpts,
    "MOVING merged": moving.Merged,
    "DURABLES": durable.DurableAnswer,
    "durable": durable.DurableInfo,
    "BATCH": durable.DurableBatch,
    "batch item": durable.BatchItem,
    "GAP": client.GapNotice,
    "SETTLED": client.SettledRequest,
    "MISSED": client.MissedNotice,
    "LOST": client.LostNotice,
    "answer": client.AnswerItem,
    "delivery": client.Delivery,
    "notification": PublishedBody,
}
DURABLE = get_args(durable.DurableRequest)
WITHOUT_FIELDS = {control.Ping, control.Pong}
ON_THE_PAGE_IN_WORDS = {client.PublishRequest}  # its body is no map and no array


def table(*header: str) -> list[list[str]]:
    """Return the rows of the page's table with this header."""
    start = PAGE.index("| " + " | ".join(header) + " |\n")
    rows = []
    for line in PAGE[start:].splitlines()[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def senders(kind: FrameKind) -> str:
    """Return who sends a kind, as far as the code takes it from them."""
    if kind in (FrameKind.HELLO, FrameKind.PROOF):
        return "client"
    if kind in (FrameKind.WELCOME, FrameKind.REFUSED, FrameKind.CHALLENGE):
        return "broker"
    from_client = is_known(client.decode_from_client, kind)
    to_client = is_known(client.decode_to_client, kind)
    if from_client and to_client:
        return "both"
    return "client" if from_client else "broker" if to_client else "brokers"


CONTROL = {
    control.KINDS[type(each)]: client.encode(each)
    for each in (
        control.Ping(),
        control.Pong(),
        control.Goodbye(""),
        control.Notice(BrokerId("a", 0), "one", 1, holds=True),
        control.StatusRequest(1),
        control.Status(1, {}),
    )
}
"""Bodies that can be read: only then is it looked at who has sent them."""


def is_known(decode, kind: FrameKind) -> bool:
    try:
        decode(Frame(kind, CONTROL.get(kind, b"")))
    except ProtocolError as failure:
        return "does not send" not in str(failure)
    return True


def test_kinds_on_the_page_are_those_of_the_code():
    shown = {name: (int(number), sent_by) for number, name, sent_by, _ in kinds()}
    assert shown == {kind.name: (kind.value, senders(kind)) for kind in FrameKind}


def kinds() -> list[list[str]]:
    return table("number", "kind", "sent by", "body")


def test_bodies_on_the_page_are_those_of_the_code():
    bodies = {name: body for _, name, _, body in kinds()}
    for name, message in MESSAGES.items():
        if name in bodies:
            assert bodies[name] == type_on_page(inspect.type_info(message)), name
    assert {type_on_page(inspect.type_info(each)) for each in DURABLE} == {bodies["DURABLE"]}
    assert (bodies["PING"], bodies["PONG"]) == ("empty map", "empty map")
    assert (bodies["ANSWERS"], bodies["DELIVER"]) == ("array of answers", "array of deliveries")


def type_on_page(found: inspect.Type) -> str:
    """Return what the page calls a type."""
    names = {
        inspect.IntType: "integer",
        inspect.BoolType: "boolean",
        inspect.StrType: "text",
        inspect.EnumType: "text",
        inspect.BytesType: "bytes",
        inspect.NoneType: "nil",
        inspect.DictType: "map",
        inspect.NamedTupleType: "array",
        inspect.TupleType: "array",
    }
    if isinstance(found, inspect.StructType):
        return "array" if found.array_like else "map"
    if isinstance(found, inspect.ListType):
        return f"array of {type_on_page(found.item_type)}"
    if isinstance(found, inspect.UnionType):
        return " or ".join(sorted({*map(type_on_page, found.types)}, reverse=True))
    return names[type(found)]


def fields_in_code(message: type) -> list[tuple[str, str, str, bool]]:
    """Return where each field stands, its name, its type and whether it must be there."""
    found = inspect.type_info(message)
    assert isinstance(found, inspect.StructType)
    tag = [("key", found.tag_field, "text", True)] if found.tag_field else []
    opening = {each.name for each in fields(greeting._Opening)}
    return tag + [
        (
            str(place) if found.array_like else "key",
            each.encode_name,
            type_on_page(each.type),
            each.required or (message is greeting.ClientHello and each.name in opening),
        )
        for place, each in enumerate(found.fields)
    ]


@pytest.mark.parametrize("message", MESSAGES)
def test_fields_on_the_page_are_those_of_the_code(message: str):
    shown = [
        (at, name, kind, "by default" not in what)
        for each, at, name, kind, what in table("message", "at", "field", "type", "what")
        if each == message
    ]
    assert shown == fields_in_code(MESSAGES[message])


def test_every_message_between_client_and_broker_is_on_the_page():
    shown = {row[0] for row in table("message", "at", "field", "type", "what")}
    assert shown == MESSAGES.keys()
    said = {*get_args(client.FromClient), *get_args(client.ToClient)}
    plain = {get_args(each)[0] if get_args(each) else each for each in said}
    documented = {*MESSAGES.values()} | WITHOUT_FIELDS | ON_THE_PAGE_IN_WORDS
    assert plain <= documented
    assert not any(fields(message) for message in WITHOUT_FIELDS)


def test_constants_of_the_greeting_are_those_of_the_code():
    said = {
        name: what
        for message, _, name, _, what in table("message", "at", "field", "type", "what")
        if message == "HELLO"
    }
    assert said["magic"] == f'`"{greeting.MAGIC}"`'
    assert said["version"] == str(greeting.VERSION)
    assert said["role"] == '`"client"`'


def test_what_a_request_about_durable_subscriptions_asks_is_that_of_the_code():
    said = {
        message.removeprefix("DURABLE "): what
        for message, _, name, _, what in table("message", "at", "field", "type", "what")
        if name == "ask"
    }
    assert said == {
        each.__struct_config__.tag: f'`"{each.__struct_config__.tag}"`' for each in DURABLE
    }


def test_limits_on_the_page_are_those_of_the_code():
    limits = Limits()
    (id_length,) = fields(client.SubscribeRequest)[2].type.__metadata__
    assert [(what, most) for what, most, _ in table("what", "at most", "or as configured by")] == [
        ("length of a frame before WELCOME", f"{greeting.HELLO_MAX:,} bytes"),
        ("length of a frame after it", f"{limits.frame_max:,} bytes"),
        ("a notification", "half of `frame_max`"),
        (
            "publications without an answer, if more than one notification",
            f"{limits.publish_window:,} bytes",
        ),
        ("notifications of a PUBLISH", f"{PUBLISH_MAX:,}"),
        ("time until HELLO", f"{limits.hello_s:g} s"),
        (
            "silence after a PING, of which four come in that time",
            f"{limits.client_silence_s:g} s",
        ),
        ("subscriptions of a client", f"{limits.subscriptions_per_client:,}"),
        ("terms of all its filters", f"{limits.terms_per_client:,}"),
        (
            "what the LIKEs of all its filters may cost on longest texts",
            f"{limits.matching_ms_per_client:g} ms",
        ),
        (
            "the same of all clients of a user who logs in, at one broker",
            f"{limits.clients_per_user} times as much",
        ),
        ("clients of one address", f"{limits.clients_per_host:,}"),
        (
            "time in which a client consumes nothing and others wait for it",
            f"{limits.stall_s:g} s",
        ),
        ("time to come back after a broken connection", f"{limits.session_s:g} s"),
        ("a client's name, of printable characters", f"{greeting.CLIENT_ID_MAX} characters"),
        ("a subscription's name", f"{id_length.max_length} characters"),
        ("a filter", f"{LENGTH_MAX:,} characters"),
        (
            "a durable subscription's name, of printable characters",
            f"{durable.NAME_MAX} characters",
        ),
        ("notifications of a BATCH", f"{durable.READ_MAX:,}"),
        ("bytes of its notifications, if more than one", f"{durable.READ_BYTES:,} bytes"),
        (
            "how long a read of a durable subscription waits",
            f"{durable.WAIT_MS_MAX // 1000} s",
        ),
        (
            "such reads that wait for an answer; past it the oldest that waits is answered",
            f"{durable.READS_MAX}",
        ),
        (
            "SUBSCRIBE, UNSUBSCRIBE and SETTLED that wait for an answer",
            f"{answers.REQUESTS_MAX:,}",
        ),
        ("of these, SETTLED", f"{settling.REQUESTS_MAX}"),
        ("attempts of a DURABLE commit or unstage", f"{durable.PARTS_MAX:,}"),
        ("DURABLE that wait for their turn", f"{answers.REQUESTS_MAX:,}"),
        ("all their bytes", f"{limits.frame_max:,} bytes"),
        ("a secret", f"{greeting.SECRET_MAX} characters"),
        ("items of ANSWERS that wait to be read", f"{answers.REQUESTS_MAX:,}"),
        ("PONG and STATUS that wait to be read", f"{answers.REPLIES_MAX}"),
        ("attributes of a notification", f"{notification.ATTRIBUTES_MAX}"),
        ("an attribute's name", f"{notification.NAME_LENGTH_MAX} characters"),
        ("a text", f"{notification.TEXT_LENGTH_MAX:,} characters"),
        ("an integer", "64 bits with a sign"),
        ("a float", "any finite one"),
    ]


def test_keys_come_in_any_order_and_unknown_ones_are_left_alone():
    wish = client.SubscribeRequest(1, 2, "a/1", "x > 1", "sql", 0)
    pairs = {"later": [{}], **dict(reversed(msgspec.structs.asdict(wish).items()))}
    assert client.decode_from_client(Frame(FrameKind.SUBSCRIBE, client.encode(pairs))) == wish


def again(said: Said) -> bytes:
    """Return the bytes of what was said, decoded and encoded by the code."""
    (frame,) = FrameDecoder().receive_data(said.data)
    if frame.kind in (FrameKind.HELLO, FrameKind.WELCOME):
        greeted = greeting.decode_answer(frame)
        is_welcome = isinstance(greeted, greeting.Welcome)
        return (greeting.encode_welcome if is_welcome else greeting.encode_hello)(greeted)
    decode = client.decode_from_client if said.by_client else client.decode_to_client
    message = decode(frame)
    if isinstance(message, client.PublishRequest):
        raws = msgspec.msgpack.decode(message.notifications, type=list[msgspec.Raw])
        return client.encode_publish(message.request, [bytes(raw) for raw in raws])
    if isinstance(message, list) and isinstance(message[0], client.Delivery):
        encoded = [(each.numbers, client.encode(each.notification)) for each in message]
        items = [client.encode_delivery(*each) for each in encoded]
        return encode_items(FrameKind.DELIVER, items)
    if isinstance(message, list):
        return client.encode_answers(message)
    if type(message) in control.KINDS:
        return control.encode_control(message)
    return client.encode_request(message)


def test_bytes_of_the_example_are_those_of_the_code():
    said = conversation(PAGE)
    for each in said:
        assert each.data == again(each), each.lines
    kinds = {each.data[4] for each in said}
    assert len(said) >= 10
    assert {FrameKind.SUBSCRIBE, FrameKind.PUBLISH, FrameKind.DELIVER, FrameKind.CONSUMED} <= kinds


def test_words_beside_the_bytes_of_the_example_say_what_the_bytes_say():
    compared = 0
    for each in conversation(PAGE):
        length, kind = each.data[3], FrameKind(each.data[4])
        assert each.lines[0][1] == f"{length} bytes follow; kind {kind.value}, {kind.name}"
        for data, words in each.lines[1:]:
            if re.match(r'"\w+": ', words):
                assert msgspec.msgpack.decode(b"\x81" + data) == json.loads(f"{{{words}}}")
                compared += 1
    assert compared > 20
