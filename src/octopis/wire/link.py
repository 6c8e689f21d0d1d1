"""A link's two directions: routing messages to frames, and bytes to routing messages."""

from itertools import groupby
from operator import itemgetter

from octopis.errors import ProtocolError
from octopis.routing.messages import HostState, Message, Routed, Snapshot
from octopis.wire.control import Goodbye, Notice, Ping, Pong, decode_control
from octopis.wire.frames import Frame, Kind, encode_items
from octopis.wire.routed import decode_headed, decode_routed, encode_routed
from octopis.wire.subscriptions import (
    Assembler,
    decode_changes,
    encode_change,
    encode_host_state,
    encode_snapshot,
)

Encoded = tuple[Kind, bytes]
"""A message as it waits in a queue: an item of a frame, or (a table) all its frames."""

LinkControl = Ping | Pong | Goodbye | Notice

_WHOLE_FRAMES = (Kind.SNAPSHOT, Kind.HOST_STATE)
NOTIFICATIONS = (Kind.ROUTED, Kind.HEADED)
"""Kinds of messages that a full queue may drop; all others keep the tables right."""


def encode_message(message: Message) -> Encoded:
    """Return a routing message as it waits in a queue."""
    if isinstance(message, Routed):
        return encode_routed(message)
    if isinstance(message, Snapshot):
        return Kind.SNAPSHOT, b"".join(encode_snapshot(message))
    if isinstance(message, HostState):
        return Kind.HOST_STATE, b"".join(encode_host_state(message))
    return Kind.CHANGES, encode_change(message)


def frames_of(messages: list[Encoded]) -> list[bytes]:
    """Return messages as frames: neighbours of one kind share one."""
    frames = []
    for kind, run in groupby(messages, itemgetter(0)):
        items = [item for _, item in run]
        if kind in _WHOLE_FRAMES:
            frames += items
        else:
            frames.append(encode_items(kind, items))
    return frames


class LinkDecoder:
    """Turns the frames of a neighbour into what it said, in order."""

    def __init__(self) -> None:
        self._assembler = Assembler()

    def decode(self, frame: Frame) -> list[Message] | LinkControl:
        """Return routing messages or a control message, or raise ProtocolError."""
        kind, body = frame
        if kind == Kind.ROUTED:
            return list(decode_routed(body))
        if kind == Kind.HEADED:
            return list(decode_headed(body))
        if kind == Kind.CHANGES:
            return decode_changes(body)
        if kind == Kind.SNAPSHOT:
            snapshot = self._assembler.snapshot(body)
            return [] if snapshot is None else [snapshot]
        if kind == Kind.HOST_STATE:
            state = self._assembler.host_state(body)
            return [] if state is None else [state]
        control = decode_control(frame)
        if not isinstance(control, LinkControl):
            raise ProtocolError(f"a frame of kind {kind} does not belong on a link")
        return control
