"""What publishers had accepted, what subscribers got, and what else happened, as it happened.

The log knows nothing of channels. It is what the laws are checked by; a digest over all of it tells
whether two runs were the same.
"""

from collections import Counter
from hashlib import blake2b

import msgspec

from octopis.core.model import BrokerId

Name = tuple[str, int]
"""A notification: its publisher, and the publisher's number."""


class Accepted(msgspec.Struct, frozen=True):
    """A notification that a life of its host has taken, with the hosts it knew to want it."""

    name: Name
    topic: int
    host: BrokerId
    life: int
    targets: frozenset[BrokerId]
    at_ns: int
    known: frozenset[str] = frozenset()
    """The subscriptions that match it, as far as that life knew them."""


class Delivered(msgspec.Struct, frozen=True):
    """A notification as a client got it, at a life of its host."""

    name: Name
    topic: int
    client: str
    host: BrokerId
    life: int
    at_ns: int


class Told(msgspec.Struct, frozen=True):
    """A host told its clients that notifications of another one are missing."""

    host: BrokerId
    of: BrokerId
    count: int | None
    at_ns: int


class Log:
    """Everything that happened in a run; `story` in words, if somebody wants to read it."""

    def __init__(self, *, tells: bool = False) -> None:
        self.accepted: list[Accepted] = []
        self.delivered: list[Delivered] = []
        self.told: list[Told] = []
        self.begun: set[tuple[BrokerId, int, BrokerId, int]] = set()
        """Two hosts, each with its life: the first has said that it knows of the second."""

        self.answered: set[Name] = set()
        """What publishers know to be on disk."""

        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self.story: list[tuple[int, str]] = []
        self._tells = tells
        self._digest = blake2b(digest_size=16)

    def count(self, what: str, count: int = 1) -> None:
        """Count something."""
        self.counts[what] += count

    def note(self, now_ns: int, what: object) -> None:
        """Take something into the digest."""
        self._digest.update(f"{now_ns} {what}\n".encode())

    def tell(self, now_ns: int, text: str) -> None:
        """Take something into the digest and the story."""
        self.note(now_ns, text)
        if self._tells:
            self.story.append((now_ns, text))

    def violated(self, now_ns: int, law: str, detail: str) -> None:
        """Know that a law was violated."""
        self.violations.append(f"{law}: {detail}, at {now_ns / 1e9:.6f} s")
        self.tell(now_ns, f"VIOLATED {law}: {detail}")

    @property
    def digest(self) -> str:
        """What two runs have in common only if they were the same."""
        return self._digest.hexdigest()
