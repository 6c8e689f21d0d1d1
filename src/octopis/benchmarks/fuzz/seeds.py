"""Real messages, of every kind of frame: where mutation begins, as chance would not find them."""

from functools import cache

from octopis.core.delivery.lasting.records import Policy
from octopis.core.delivery.posts import Ack, Open, Post
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector, Value
from octopis.core.routing.marks import Confirmed
from octopis.core.routing.messages import (
    Flooded,
    HeardVersions,
    HostChange,
    HostState,
    HostTable,
    HostVersions,
    Mark,
    Message,
    NotificationMessage,
    Refresh,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.routing.settling import Inquiry, Report
from octopis.core.wire import durable, moving
from octopis.core.wire.client import (
    AnswerItem,
    Change,
    Consumed,
    SettledRequest,
    SubscribeRequest,
    UnsubscribeRequest,
    encode_answers,
    encode_delivery,
    encode_gap,
    encode_lost,
    encode_missed,
    encode_publish,
    encode_request,
)
from octopis.core.wire.control import (
    Control,
    Goodbye,
    Notice,
    Ping,
    Pong,
    Refusal,
    Status,
    StatusRequest,
    encode_control,
)
from octopis.core.wire.frames import FrameKind, encode_items
from octopis.core.wire.greeting import (
    BrokerHello,
    ClientHello,
    Welcome,
    encode_hello,
    encode_refusal,
    encode_welcome,
)
from octopis.core.wire.inquiries import Asking, encode_asking
from octopis.core.wire.link import encode_message, frames_of
from octopis.core.wire.login import Scram, Token, encode_challenge, encode_proof
from octopis.core.wire.posts import encode_posts
from octopis.core.wire.published import Published, decode_one, encode_published
from octopis.core.wire.targeted import encode_numbered, encode_targeted
from octopis.errors import LoginFailed, NotPermitted

HERE, THERE = BrokerId("a", 0), BrokerId("b", 0)
_FILTER = parse_filter("price > 50 AND (symbol = 'IBM' OR volume IS NULL)")
_SUBSCRIPTION = Subscription("prices", _FILTER, 3, "owner")
_POLICY = next(iter(Policy))
CLIENT_FIRST = b"n,,n=alice,r=rOprNGfwEbeRWgbNEkqO"


@cache
def notification() -> Published:
    """Return one as it is after it has crossed the wire."""
    attributes: dict[str, Value] = {
        "symbol": "IBM",
        "price": 51.5,
        "volume": 2**40,
        "halted": False,
        "é": "",
    }
    return decode_one(encode_published(attributes, b"payload", "me", 7, 1_700_000_000_000_000_000))


def greetings() -> list[bytes]:
    """Return frames of hellos, and of all answers to them."""
    hello = ClientHello("reader", 1_000, 3, "secret", session="s", received=4, instance="i")
    return [
        encode_hello(BrokerHello(HERE, THERE, "0" * 24, "tnr", "memory")),
        encode_hello(hello),
        encode_hello(ClientHello("watcher", 1, observer=True)),
        encode_hello(ClientHello("reader", 10, login=Token("eyJhbGciOiJFZERTQSJ9.e30.AAAA"))),
        encode_hello(ClientHello("reader", 10, login=Scram("SCRAM-SHA-256", CLIENT_FIRST))),
        encode_welcome(Welcome(HERE, 2**24, 2**20, "s", False, 10_000, "a,0/0", "alice/r", b"v=")),
        encode_refusal(Refusal.of(LoginFailed("user or password is wrong"))),
        encode_challenge(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
        encode_proof(b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2,p=dHzbZapWIk4jUhN+Ute9ytag9zj="),
    ]


def controls() -> list[bytes]:
    """Return frames that may come on any connection."""
    said: list[Control] = [
        Ping(),
        Pong(),
        Goodbye("the broker stops"),
        Notice(HERE, "0af3", 9, True, True, (THERE,), ("owner",)),
        StatusRequest(5),
        Status(5, {"broker": "a,0", "queued": 0, "links": [{"up": True, "s": 1.5}], "no": None}),
    ]
    return [encode_control(each) for each in said]


def from_clients() -> list[bytes]:
    """Return frames of all that clients ask for."""
    encoded = notification().encoded
    publications = [encode_publish(8, [encoded]), encode_publish(9, [encoded, encoded])]
    changes: list[Change | Consumed] = [
        SubscribeRequest(1, 0, "prices", str(_FILTER), "sql", 2),
        SubscribeRequest(2, 1, "news", "[class,eq,'NEWS'],[size,<,20]", "padres", 0),
        UnsubscribeRequest(3, "prices"),
        SettledRequest(4, 1_000),
        Consumed(77),
    ]
    return [
        *map(encode_request, changes),
        *publications,
        *map(durable.encode_durable_request, _durable_requests()),
    ]


def _durable_requests() -> list[durable.DurableRequest]:
    rows = b"\x91" + notification().encoded
    return [
        durable.OpenDurable(1, "weekly", str(_FILTER), policy=_POLICY, shared=True),
        durable.ReadDurable(2, "weekly", 10, 100, 1_000),
        durable.AckDurable(3, "weekly", 1, 20),
        durable.DropDurable(4, "weekly"),
        durable.ListDurables(5),
        durable.StageRows(6, "query", 1, 2, 3, 0, rows),
        durable.CommitStaged(7, "query", 1, [(0, 1, 2), (1, 1, 2)]),
        durable.DropStaged(8, "query", 1, [(0, 1)]),
        moving.JoinDurable(9, "weekly", "b,0", _POLICY, 1, 1, 5, "TRUE"),
        moving.PassDurable(10, "weekly", 1, "a,0", "b,0", (1, 2)),
        moving.LeaveDurable(11, "weekly", "b,0", 1),
        moving.CopyDurable(12, "weekly", 3),
        moving.BeginDurable(13, "weekly", 1, 2, 0, _POLICY, {0: 1}),
        moving.TakeDurable(14, "weekly", [1, 2], [b"a", b"b"], 2),
        moving.FinishDurable(15, "weekly"),
        moving.ForgetDurable(16, "weekly", "b,0"),
    ]


def to_clients() -> list[bytes]:
    """Return frames of all that brokers say to clients."""
    encoded = notification().encoded
    info = durable.DurableInfo("weekly", "TRUE", "keep", 1, 2, 3, 4, 0, False, True, 5, 6)
    refused = AnswerItem(2, Refusal.of(NotPermitted("your role may not publish anything")))
    return [
        encode_answers([AnswerItem(1), refused, AnswerItem(3, None, 1, 2)]),
        encode_items(FrameKind.DELIVER, [encode_delivery([0, 1], encoded)] * 2),
        encode_gap(5),
        encode_missed(THERE, 4),
        encode_missed(THERE, None),
        encode_lost(1, "it has moved on"),
        durable.encode_durable_answer(durable.DurableAnswer(1, [info])),
        durable.encode_batch(2, 1, 0, 9, [8, 9], [encoded, encoded]),
        *map(moving.encode_move_answer, _move_answers()),
    ]


def _move_answers() -> list[moving.MoveAnswer]:
    return [
        moving.Passage(1, True, True, 5, 4, (1, 2)),
        moving.Left(2, 1, 2, 0, _POLICY, {0: 1}),
        moving.Excerpts(3, [1, 2], [b"a", b"b"], 2),
        moving.Merged(4, 0),
    ]


def links() -> list[bytes]:
    """Return frames of all that neighbours say to each other, but for target routing's."""
    subscribe = Subscribe(_SUBSCRIPTION, ClusterBitVector(5), HERE)
    messages: list[Message] = [
        subscribe,
        Unsubscribe("prices"),
        Flooded(HERE, 1, 2, _SUBSCRIPTION, None),
        Flooded(HERE, 1, 3, None, "prices"),
        HostVersions({HERE: (1, 2, 3)}),
        Refresh(HERE, 1),
        Mark(HERE, 1, (2, 3)),
        HostChange(HERE, 1, 2, 3, (_SUBSCRIPTION,), ("old",), 3, 1),
        HeardVersions({HERE: (1, 2)}, True),
        TableSnapshot((subscribe, subscribe), True),
        HostState(HERE, 1, 2, (_SUBSCRIPTION,)),
        HostTable(HERE, 1, 2, (_SUBSCRIPTION,), True),
        NotificationMessage(notification()),
        NotificationMessage(notification(), ClusterBitVector(6), 9),
    ]
    askings: list[Asking] = [
        Inquiry(HERE, 1, 2, 3, 4),
        Confirmed(HERE, 1, 3),
        Report(HERE, 1, 2, THERE, 3, 3, 100, 50),
    ]
    posts: list[Post] = [Ack(1, 0, 5, 6, 7, 0, ((8, 9),), 1, 2), Open(1, 0, 5, 6, 7, 1, 2, 3, 4)]
    return [
        *frames_of([encode_message(each) for each in messages]),
        *(frames_of([encode_message(each)])[0] for each in messages),
        *map(encode_asking, askings),
        encode_posts(posts),
    ]


def targeted() -> list[bytes]:
    """Return frames of notifications of target routing, without and with channels."""
    plain = [
        NotificationMessage(notification(), targets=3, tried=1),
        NotificationMessage(notification(), targets=1 << 70, tried=0),
    ]
    numbered = [
        NotificationMessage(notification(), ClusterBitVector(0), 3, 1, 77, 5, (1, 2)),
        NotificationMessage(notification(), ClusterBitVector(0), 1 << 70, 0, 77, 6, (1,)),
    ]
    return frames_of([*map(encode_targeted, plain), *map(encode_numbered, numbered)])


def frames() -> list[bytes]:
    """Return a frame of every kind."""
    return [*greetings(), *controls(), *from_clients(), *to_clients(), *links(), *targeted()]
