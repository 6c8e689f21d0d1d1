"""The first frames of a connection: who is there, and whether both speak the same protocol.

Whoever connects says hello. A broker answers a broker with a hello of its own, a client with a
welcome (before which it may have to prove who it is), and anybody else with a refusal before it
closes the connection.
"""

import msgspec

from octopis.core.model import BrokerId
from octopis.core.wire.control import Refusal
from octopis.core.wire.frames import BodyDecoder, Frame, FrameKind, encode, encode_frame
from octopis.core.wire.login import Challenge, Login, decode_challenge
from octopis.errors import ProtocolError

MAGIC = "octopis"

ALPN = MAGIC
"""What TLS says is spoken within."""
VERSION = 1
HELLO_MAX = 8_192
"""A frame before the hello is at most so long, so that strangers cost no memory."""

CLIENT_ID_MAX = 128
SECRET_MAX = 256
SESSION_MAX = 64


class BrokerHello(msgspec.Struct, frozen=True, tag_field="role", tag="broker"):
    """A broker, whom it believes to be talking to, and the overlay that both should be in."""

    broker: BrokerId
    to: BrokerId
    overlay: str
    algorithm: str
    level: str = ""
    """Whether notifications go on channels, where both ends must do the same."""

    magic: str = MAGIC
    version: int = VERSION


class ClientHello(msgspec.Struct, frozen=True, tag_field="role", tag="client"):
    """A client, and how many deliveries it takes that it has not consumed.

    `backlog` of those it has already, from an earlier connection. Its `secret` is what makes it
    the same client on the next connection, here or at another broker: without it, its name and
    its subscriptions are another's. An `observer` only asks for the status, and is not in it.

    After a broken connection it may wish to go on with the `session` that it had, of which it has
    `received` so many deliveries (counted as in Consumed). `instance` is a name that no other
    run of the same program has: a broker with a disk knows by it what was published before.
    """

    client: str
    window: int
    backlog: int = 0
    secret: str = ""
    observer: bool = False
    session: str = ""
    received: int = 0
    instance: str = ""
    login: Login | None = None
    """By what it proves who it is, where it does so by a token or a password."""

    magic: str = MAGIC
    version: int = VERSION

    def __repr__(self) -> str:
        return f"ClientHello({self.client!r}, ...)"  # its secret and its login are nobody's


Hello = BrokerHello | ClientHello


class Welcome(msgspec.Struct, frozen=True):
    """The broker that a client has reached, and the limits that it must keep to.

    `publish_window` is how many bytes of publications may be without answer, unless it is one.
    `session` names what begins here, or goes on where it is `resumed`: the broker keeps it for
    `session_ms` after the connection breaks. It is empty where nothing is kept. `store` names the
    disk on which the broker keeps what it accepts: at the same one, publications without an answer
    can be sent again, whatever happened to the broker, and are taken once.

    `client` is what the client is called in the whole overlay, and what it publishes under; empty
    where that is as it has said. `verifier` is SCRAM's last message of a server: who has a password
    takes no welcome without it.
    """

    broker: BrokerId
    frame_max: int
    publish_window: int
    session: str = ""
    resumed: bool = False
    session_ms: int = 0
    store: str = ""
    client: str = ""
    verifier: bytes = b""


class _Opening(msgspec.Struct):
    magic: str
    version: int


_opening = BodyDecoder[_Opening](_Opening, "the hello")
_hello = BodyDecoder[Hello](Hello, "the hello")
_welcome = BodyDecoder[Welcome](Welcome, "the welcome")
_refusal = BodyDecoder[Refusal](Refusal, "the refusal")


def encode_hello(hello: Hello) -> bytes:
    """Return the frame of a hello."""
    return encode_frame(FrameKind.HELLO, encode(hello))


def encode_welcome(welcome: Welcome) -> bytes:
    """Return the frame of a welcome."""
    return encode_frame(FrameKind.WELCOME, encode(welcome))


def encode_refusal(refusal: Refusal) -> bytes:
    """Return the frame that ends a connection before it has begun."""
    return encode_frame(FrameKind.REFUSED, encode(refusal))


def decode_hello(frame: Frame) -> Hello:
    """Return the hello that whoever connected has said, or raise ProtocolError."""
    if frame.kind != FrameKind.HELLO:
        raise ProtocolError(f"the first frame is of kind {frame.kind}, not a hello")
    opening = _opening.decode(frame.body)
    if opening.magic != MAGIC:
        raise ProtocolError(f"the hello begins with {opening.magic[:20]!r}, not {MAGIC!r}")
    if opening.version != VERSION:
        raise ProtocolError(
            f"the other side speaks version {opening.version} of the protocol, not {VERSION}"
        )
    hello = _hello.decode(frame.body)
    if isinstance(hello, ClientHello) and not (
        1 <= len(hello.client) <= CLIENT_ID_MAX
        and hello.client.isprintable()
        and len(hello.secret) <= SECRET_MAX
        and hello.window > 0
        and hello.backlog >= 0
        and len(hello.session) <= SESSION_MAX
        and hello.received >= 0
        and len(hello.instance) <= SESSION_MAX
    ):
        raise ProtocolError(
            f"a client needs a printable name of 1 to {CLIENT_ID_MAX} characters and a window; "
            f"its secret has at most {SECRET_MAX}, its session at most {SESSION_MAX}"
        )
    return hello


def decode_answer(frame: Frame) -> Hello | Welcome | Challenge | Refusal:
    """Return what a broker has answered to a hello, or raise ProtocolError."""
    if frame.kind == FrameKind.WELCOME:
        return _welcome.decode(frame.body)
    if frame.kind == FrameKind.CHALLENGE:
        return decode_challenge(frame)
    if frame.kind == FrameKind.REFUSED:
        return _refusal.decode(frame.body)
    return decode_hello(frame)
