"""What a sending host knows of one target: what it has not acknowledged, and when to send again."""

from collections import deque

_MS = 1_000_000
TIMEOUT_MIN_NS, TIMEOUT_MAX_NS = 100 * _MS, 5_000 * _MS
_FIRST_TIMEOUT_NS = 500 * _MS
GONE_AGAIN_NS = 1_000 * _MS
"""A host that was given up is asked so often whether it is back."""


class Channel:
    """One channel: what its target has not acknowledged, and how long its answers take."""

    __slots__ = (
        "acked",
        "backoff",
        "base",
        "behind",
        "bit",
        "bytes",
        "flying",
        "fresh",
        "given_up",
        "given_up_told",
        "heard_ns",
        "is_gone",
        "is_open",
        "last",
        "life",
        "lost_until",
        "opened_ns",
        "pending",
        "place",
        "progress_ns",
        "refused_until",
        "resent",
        "round_trip_ns",
        "variation_ns",
    )

    def __init__(self, place: int, life: int, base: int) -> None:
        self.place = place
        self.bit = 1 << place
        self.life = life
        self.given_up = 0
        """How much this life of the target will never get, in all."""

        self.given_up_told = 0
        """How much of that it is known to have heard of."""

        self.begin(life, base)

    def begin(self, life: int, base: int) -> None:
        """Begin anew after `base`, with a life of the target."""
        self.life = life
        self.base = self.last = self.acked = base
        self.pending: deque[int] = deque()
        self.bytes = 0
        self.is_open = self.is_gone = False
        self.opened_ns = -GONE_AGAIN_NS
        self.heard_ns = self.progress_ns = 0
        self.lost_until = self.refused_until = 0
        self.resent: dict[int, int] = {}
        self.backoff = 0
        self.behind, self.flying, self.fresh = False, 0, 0
        self.round_trip_ns = self.variation_ns = 0

    @property
    def timeout_ns(self) -> int:
        """After so long without an answer, something is taken to be lost."""
        if not self.round_trip_ns:
            return _FIRST_TIMEOUT_NS
        usual = self.round_trip_ns + 4 * self.variation_ns
        return min(max(usual, TIMEOUT_MIN_NS), TIMEOUT_MAX_NS)

    @property
    def patience_ns(self) -> int:
        """The same where sending again has not helped: longer and longer, but not without end."""
        return min(self.timeout_ns << self.backoff, TIMEOUT_MAX_NS)

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing that the other end has still to say."""
        return not self.pending and self.is_open and self.given_up == self.given_up_told

    def took(self, round_trip_ns: int) -> None:
        """Take in how long an acknowledgement took (as TCP does, RFC 6298)."""
        if not self.round_trip_ns:
            self.round_trip_ns, self.variation_ns = round_trip_ns, round_trip_ns // 2
            return
        error = abs(self.round_trip_ns - round_trip_ns)
        self.variation_ns += (error - self.variation_ns) // 4
        self.round_trip_ns += (round_trip_ns - self.round_trip_ns) // 8
