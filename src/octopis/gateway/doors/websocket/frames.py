"""What a WebSocket is sent: arrays of messages, in frames that no client finds too long.

Messages are made one frame at a time: what is shared by all readers while it waits is copied for
each of them only when it goes.
"""

import json
from collections.abc import Iterable, Iterator

import msgspec

from octopis.gateway.readers.reader import Batch, Item

FRAME_BYTES = 256 * 1024
"""A frame ends before it is longer, unless a single message is: many clients take 1 MiB at most."""

_encode = msgspec.json.Encoder().encode


def messages_of(items: Iterable[Item]) -> Iterator[bytes]:
    """Yield what tells of notifications and gaps, by the names of their subscriptions."""
    for name, item in items:
        id_ = json.dumps(name).encode()
        if isinstance(item, Batch):
            head = b'{"type":"notification","id":%b,' % id_
            for body in item.bodies:
                yield head + body[1:]
        else:
            yield b'{"type":"gap","id":%b,' % id_ + _encode(item)[1:]


def framed(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Yield arrays of messages, in their order."""
    parts: list[bytes] = []
    size = 0
    for message in messages:
        if parts and size + len(message) > FRAME_BYTES:
            yield b"[%b]" % b",".join(parts)
            parts, size = [], 0
        parts.append(message)
        size += len(message) + 1
    if parts:
        yield b"[%b]" % b",".join(parts)
