"""What lets a client's session go on over another connection.

Its token and its secret say that it is the same; and of what was sent, all is kept that the client
has not reported as consumed: it may be lost with the connection.
"""

import secrets
from collections import deque
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from octopis.broker.memory import Memory
from octopis.broker.settings import Limits, QueueBounds
from octopis.core.wire.greeting import ClientHello

_SMALL_BYTES = 64 * 1024
"""Changes below this are not worth counting."""

_ITEM_BYTES = 48
"""What a delivery takes in memory beside its own bytes."""


def new_token(hello: ClientHello, limits: Limits) -> str:
    """Return what names a new session: no other one, here or after a restart, has the same.

    It is empty where nothing is kept: for nobody who has no secret to be known by.
    """
    is_kept = hello.secret and not hello.observer and limits.session_s
    return secrets.token_hex(8) if is_kept else ""


def owner_of(secret: str) -> str:
    """Return what brokers know a secret by: from it nobody finds the secret.

    Whoever has none gets a new one: nobody can be the same client later.
    """
    known_by = secret.encode() or secrets.token_bytes(16)
    return blake2b(known_by, digest_size=16, person=b"octopis-owner").hexdigest()


class Sent(NamedTuple):
    """Deliveries that went in one frame; before them so many were dropped, as a gap notice says."""

    start: int
    dropped: int
    items: list[bytes]
    size: int


class SentDeliveries:
    """Counts what is sent to a client, and keeps what it has not consumed.

    Where that is too much, the oldest are let go: most likely the client has them.
    """

    def __init__(
        self, hello: ClientHello, bounds: QueueBounds, memory: Memory, *, keeps: bool
    ) -> None:
        self.count = hello.backlog
        """How many were sent, those included that the client had when the session began."""

        self._memory = memory
        self._keeps = keeps
        self._bytes_max = bounds.capacity_bytes
        self._frames: deque[Sent] = deque()
        self._bytes = self._bytes_said = 0

    def add(self, items: list[bytes], size: int, dropped: int) -> None:
        """Note what is sent now: `size` bytes, and how many were `dropped` before them."""
        self.count += len(items)
        if not self._keeps:
            return
        size += _ITEM_BYTES * len(items)
        self._frames.append(Sent(self.count - len(items), dropped, items, size))
        self._bytes += size
        while self._bytes > self._bytes_max:
            self._bytes -= self._frames.popleft().size
        self._say()

    def consumed(self, count: int) -> None:
        """Forget what the client has consumed."""
        frames = self._frames
        while frames and frames[0].start + len(frames[0].items) <= count:
            self._bytes -= frames.popleft().size
        self._say()

    @property
    def start(self) -> int:
        """How many were sent before the oldest that is kept."""
        return self._frames[0].start if self._frames else self.count

    def reaches(self, received: int) -> bool:
        """Tell whether all is kept that a client lacks which has received so many."""
        return self.start <= received <= self.count

    def after(self, received: int) -> deque[tuple[int, list[bytes]]]:
        """Return what such a client lacks, as `dropped` and items of each frame."""
        return deque(
            (each.dropped, each.items)
            if each.start >= received
            else (0, list(islice(each.items, received - each.start, None)))
            for each in self._frames
            if each.start + len(each.items) > received
        )

    def send_away(self, reason: str) -> None:  # noqa: ARG002 - memory's Holder
        """Let go of everything: there is no room for it."""
        self._frames.clear()
        self._bytes = self._bytes_said = 0

    def close(self) -> None:
        """Keep nothing any more."""
        self._keeps = False
        self._frames.clear()
        self._bytes = 0
        self._say()

    def _say(self) -> None:
        """Say how much is held, where that has changed enough."""
        is_empty = not self._bytes and self._bytes_said
        if is_empty or abs(self._bytes - self._bytes_said) > _SMALL_BYTES:
            self._bytes_said = self._bytes
            self._memory.spare(self, self._bytes)
