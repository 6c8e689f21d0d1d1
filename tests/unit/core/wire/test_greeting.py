import itertools

import pytest

from octopis.core.model import BrokerId
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor, from_catalogue
from octopis.core.wire.frames import Frame, FrameDecoder, FrameKind, encode
from octopis.core.wire.greeting import (
    HELLO_MAX,
    BrokerHello,
    ClientHello,
    Welcome,
    decode_answer,
    decode_hello,
    encode_hello,
    encode_welcome,
)
from octopis.core.wire.link import overlay_digest
from octopis.core.wire.login import Token
from octopis.errors import ProtocolError

A, B = BrokerId("a", 0), BrokerId("b", 1)


def frame_of(data: bytes) -> Frame:
    (frame,) = FrameDecoder(HELLO_MAX).receive_data(data)
    return frame


@pytest.mark.parametrize(
    "hello", [BrokerHello(A, B, "digest", "snr"), ClientHello("me", 10, backlog=3)]
)
def test_hello_says_who_is_there(hello):
    assert decode_hello(frame_of(encode_hello(hello))) == hello


def test_version_is_looked_at_before_anything_that_a_version_may_change():
    later = {"magic": "octopis", "version": 2, "role": "gateway", "new": [1, 2]}
    with pytest.raises(ProtocolError, match="speaks version 2 of the protocol, not 1"):
        decode_hello(Frame(FrameKind.HELLO, encode(later)))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (Frame(FrameKind.PUBLISH, b""), "the first frame is of kind 34, not a hello"),
        (Frame(FrameKind.HELLO, encode({"magic": "x" * 99, "version": 1})), "begins with 'xxxx"),
        (
            Frame(FrameKind.HELLO, encode({"magic": "octopis", "version": 1, "role": "king"})),
            "hello",
        ),
        (frame_of(encode_hello(ClientHello("new\nline", 1))), "printable name"),
        (frame_of(encode_hello(ClientHello("n" * 129, 1))), "1 to 128 characters"),
        (frame_of(encode_hello(ClientHello("me", 1, backlog=-1))), "a window"),
        (frame_of(encode_hello(ClientHello("me", 1, session="s" * 65))), "its session at most 64"),
        (frame_of(encode_hello(ClientHello("me", 1, received=-1))), "a window"),
    ],
)
def test_bad_hello_is_a_protocol_error(frame: Frame, reason: str):
    with pytest.raises(ProtocolError, match=reason):
        decode_hello(frame)


def test_clients_and_brokers_that_know_nothing_of_sessions_are_understood():
    old = {"role": "client", "client": "me", "window": 1, "magic": "octopis", "version": 1}
    assert decode_hello(Frame(FrameKind.HELLO, encode(old))) == ClientHello("me", 1)
    welcome = {"broker": A, "frame_max": 1_000, "publish_window": 500}
    assert decode_answer(Frame(FrameKind.WELCOME, encode(welcome))) == Welcome(A, 1_000, 500)


def test_what_proves_who_somebody_is_stands_in_no_words():
    token = ClientHello("me", 1, secret="s" * 32, login=Token("my token"))
    assert decode_hello(frame_of(encode_hello(token))) == token
    assert repr(token) == "ClientHello('me', ...)"
    assert repr(token.login) == "Token(...)"


def test_token_that_is_too_long_is_refused_without_being_shown():
    with pytest.raises(ProtocolError) as refusal:
        decode_hello(frame_of(encode_hello(ClientHello("me", 1, login=Token("t" * 4_097)))))
    assert "ttt" not in str(refusal.value)


def test_welcome_tells_the_limits():
    welcome = Welcome(A, 1_000, 500)
    assert decode_answer(frame_of(encode_welcome(welcome))) == welcome


def test_equal_overlays_have_one_digest_and_others_do_not():
    def line(regions: str, clusters: int) -> SCOT:
        edges = list(itertools.pairwise(regions))
        return SCOT(AcyclicFactor(list(regions), edges), ConnectivityFactor.complete(clusters))

    backwards = AcyclicFactor(["c", "b", "a"], [("c", "b"), ("b", "a")])
    same = SCOT(backwards, ConnectivityFactor.complete(3))
    assert overlay_digest(line("abc", 3)) == overlay_digest(same)
    others = [line("abc", 2), line("acb", 3), line("abcd", 3), from_catalogue("figure-3").scot]
    digests = {overlay_digest(each) for each in (line("abc", 3), *others)}
    assert len(digests) == 5
