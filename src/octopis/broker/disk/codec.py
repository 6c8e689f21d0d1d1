"""Notifications on disk: as their publishers' clients have encoded them."""

from hashlib import blake2b

from octopis.core.model import Notification
from octopis.core.model.notification import UNREADABLE
from octopis.core.wire.greeting import ClientHello
from octopis.core.wire.published import Published, decode_one

_NOTHING = b"\xc0"
"""MessagePack's nil."""


class WireCodec:
    """Writes the published bytes as they are."""

    def encode(self, notification: Notification) -> bytes:
        """Return a notification as it was published."""
        assert isinstance(notification, Published), "only what came over the wire is kept"
        return notification.encoded

    def decode(self, body: bytes) -> Notification:
        """Return the notification that was written. Raises ProtocolError where it is none."""
        return decode_one(body)

    def nothing(self) -> Notification:
        """Return what nobody can read: brokers count it, and deliver nothing."""
        return Published(UNREADABLE, encoded=_NOTHING)

    def publisher(self, notification: Notification) -> tuple[bytes, int]:
        """Return what its publisher is known by here, and the publisher's number for it."""
        assert isinstance(notification, Published), "only what came over the wire is kept"
        return notification.source, notification.sequence


def source_of(hello: ClientHello, owner: str) -> bytes:
    """Return what one run of a client's program is known by; nothing, if it does not say."""
    if not hello.instance:
        return b""
    about = "\0".join((owner, hello.client, hello.instance)).encode()
    return blake2b(about, digest_size=8, person=b"octopis-source").digest()
