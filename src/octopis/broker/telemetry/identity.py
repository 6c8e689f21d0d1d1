"""Which notifications are traced, and how the spans of brokers are called.

Messages never change on their way, so no broker can write its span into a copy. Instead the span of
a broker is called by a hash of what all brokers see: a broker that gets a copy from a neighbour
knows by that what the neighbour's span is called, and makes it the parent of its own.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from octopis.client.traceparent import ATTRIBUTE, LENGTH, TraceParent, parse_traceparent
from octopis.core.model import Notification
from octopis.core.model.notification import UNREADABLE
from octopis.core.wire.published import Published, attributes_of
from octopis.errors import ProtocolError

_MARK = ATTRIBUTE.encode() + bytes([0xD9, LENGTH])
"""The attribute's name and the head of a text of that length, as encoders write them."""

_SHORT = 4_096
"""A notification that is longer is not searched: reading its attributes alone is quicker."""


class Identity(NamedTuple):
    """One notification of one trace: the same at every broker."""

    parent: TraceParent
    publisher: str
    sequence: int

    def span_id(self, broker: str) -> int:
        """Return what the span of a broker is called, by the broker's short name."""
        trace_id, span_id, _ = self.parent
        facts = f"{trace_id:032x} {span_id:016x} {self.sequence} {broker} {self.publisher}"
        digest = blake2b(facts.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") or 1  # 0 is no span


def promising(notifications: Iterable[Notification | None]) -> list[int]:
    """Return the places of those that may be traced: nothing is asked of all others but this.

    Written out, as it is asked of every notification.
    """
    return [
        place
        for place, each in enumerate(notifications)
        if each is not None
        and (ATTRIBUTE in each.attributes if each.attributes else _may_be_in(each))
    ]


def _may_be_in(notification: Notification) -> bool:
    """Tell whether a notification whose attributes nobody has read may be traced."""
    assert isinstance(notification, Published), "only what came over the wire is passed on"
    return len(notification.encoded) > _SHORT or _MARK in notification.encoded


def identity_of(notification: Published) -> Identity | None:
    """Return what is traced of a notification; None where nothing is.

    Brokers on the way have not read the attributes.
    """
    attributes = notification.attributes
    if attributes and ATTRIBUTE not in attributes:
        return None
    encoded = notification.encoded
    if len(encoded) <= _SHORT and _MARK not in encoded:
        return None
    if not attributes:
        if attributes is UNREADABLE:
            return None
        try:
            attributes = attributes_of(encoded)
        except ProtocolError:  # its target will say that it cannot be read
            return None
    parent = parse_traceparent(attributes.get(ATTRIBUTE))
    if parent is None or not parent.is_sampled:
        return None
    return Identity(parent, notification.publisher, notification.sequence)
