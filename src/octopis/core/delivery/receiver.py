"""The receiving end of all channels to a host: what comes is handed on once, and in order.

A copy says its number and, for this host, the number before it. What follows the last one that was
handed on is handed on at once, and what has waited for it with it; what comes too early waits; what
was there before is dropped. In either case it is acknowledged, all together at the next look.

A stream is one life of a sending host. It begins with an `Open`, and no earlier: so nobody takes
the middle of a stream for its beginning. Where another life of the same host is known, it may have
been under way for long: it is asked back (`token`), and only who answers is alive. The other life
is dead from then on.

A hole is not filled any more when the life that could is dead, or silent for as long as it takes to
give a host up. Then what has waited behind it is handed on, still in order, and clients are told.
"""

from collections import deque
from collections.abc import Sequence

import msgspec

from octopis.core.delivery.posts import RANGES_MAX, Ack, Open
from octopis.core.routing.messages import NotificationMessage

_MS = 1_000_000
OVERTAKING_NS = 20 * _MS
"""A hole is not named before: on ways around, later ones overtake."""

_ASK_AGAIN_NS = 100 * _MS
_DEAD_MAX = 64
_UNOPENED_MAX = 64
"""So many streams, and of each so many notifications, wait for a beginning."""

LIFE_BITS = 32
_ALL = 1 << 62


def origin_of(place: int, life: int) -> int:
    """Return what names a stream: a host and its life."""
    return place << LIFE_BITS | life


class Missed(msgspec.Struct, frozen=True):
    """Know that notifications of a host, by its place, are missing: so many, if that is known."""

    place: int
    count: int | None


class Stream:
    """What one life of a host has sent: handed on up to `last`, and `held` back beyond a hole."""

    __slots__ = ("acked", "asked_ns", "fresh", "given_up", "heard_ns", "held", "hole_ns", "last")

    def __init__(self, base: int, now_ns: int, fresh: int = 0) -> None:
        self.last = self.acked = base
        self.fresh = fresh
        """Up to there an earlier life of this host may have handed it on."""

        self.heard_ns = now_ns
        self.held: dict[int, NotificationMessage] = {}
        """By the number before them."""

        self.given_up = 0
        self.hole_ns = self.asked_ns = 0

    def wanted(self) -> tuple[tuple[int, int], ...]:
        """Return the holes: after which number, up to which one."""
        found = []
        after = self.last
        for before in sorted(self.held):
            if before > after:
                found.append((after, before))
                if len(found) == RANGES_MAX:
                    break
            after = self.held[before].number
        return tuple(found)

    def hand_on_up_to(self, base: int) -> list[NotificationMessage]:
        """Wait no more for what is not there up to `base`; return what has waited for that."""
        found = []
        for before in sorted(self.held):
            message = self.held[before]
            if before > max(self.last, base):
                break
            del self.held[before]
            if message.number > self.last:
                self.last = message.number
                found.append(message)
        self.last = max(self.last, base)
        return found


class Receiver:
    """Takes in what is for this host. Of a stream `held_max` wait; others have to come again."""

    def __init__(self, place: int, life: int, held_max: int, give_up_ns: int) -> None:
        self._place = place
        self._below = (1 << place) - 1
        self._life = life
        self._held_max = held_max
        self._give_up_ns = give_up_ns
        self._streams: dict[int, Stream] = {}
        self._newest: dict[int, int] = {}
        self._dead: deque[int] = deque(maxlen=_DEAD_MAX)
        self._tokens: dict[int, tuple[int, int]] = {}
        """For a host, by its place, the stream that is asked back, and by what."""

        self._asked = 0
        self._unopened: dict[int, list[NotificationMessage]] = {}
        self._due: dict[int, None] = {}
        self._missed: list[Missed] = []
        self.duplicates = 0
        self.refused = 0
        """What came of streams that have not begun, or are dead; and what had no room to wait."""

    @property
    def held(self) -> int:
        """How many notifications wait for others before them."""
        return sum(len(stream.held) for stream in self._streams.values())

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to look at."""
        return not self._due and not any(stream.held for stream in self._streams.values())

    def in_order(
        self, arrived: Sequence[NotificationMessage], now_ns: int
    ) -> list[NotificationMessage]:
        """Return what may be handed on now, in order, of what has come and what has waited."""
        found: list[NotificationMessage] = []
        below = self._below
        for message in arrived:
            origin, number = message.origin, message.number
            stream = self._streams.get(origin)
            self._due[origin] = None
            if stream is None:
                self._hold_unopened(origin, message)
                continue
            stream.heard_ns = now_ns
            before = number - message.distances[(message.targets & below).bit_count()]
            if before <= stream.last < number:
                stream.last = number
                found.append(message)
                if stream.held:
                    self._hand_on_held(stream, found, now_ns)
            elif number <= stream.last or before in stream.held:
                self.duplicates += 1
            else:
                self._hold_back(stream, before, message, now_ns)
        return found

    def _hand_on_held(self, stream: Stream, found: list[NotificationMessage], now_ns: int) -> None:
        while (following := stream.held.pop(stream.last, None)) is not None:
            stream.last = following.number
            found.append(following)
        stream.hole_ns = now_ns  # what is held now waits for another hole

    def _hold_back(
        self, stream: Stream, before: int, message: NotificationMessage, now_ns: int
    ) -> None:
        if len(stream.held) >= self._held_max:
            self.refused += 1
            return
        if not stream.held:
            stream.hole_ns = now_ns
        stream.held[before] = message

    def _hold_unopened(self, origin: int, message: NotificationMessage) -> None:
        """Let what has overtaken the beginning of its stream wait for it, a little of it."""
        if origin in self._dead:
            del self._due[origin]
        elif origin in self._unopened or len(self._unopened) < _UNOPENED_MAX:
            waiting = self._unopened.setdefault(origin, [])
            if len(waiting) < _UNOPENED_MAX:
                waiting.append(message)
                return
        self.refused += 1

    def opened(self, post: Open, now_ns: int) -> list[NotificationMessage]:
        """Take in that a stream begins, or goes on after a hole; return what may be handed on."""
        origin = origin_of(post.by, post.stream)
        if origin in self._dead:
            return []
        self._due[origin] = None
        if post.life != self._life:  # it is meant for an earlier life, and is told so
            return []
        stream = self._streams.get(origin)
        if stream is None:
            is_known = self._newest.get(post.by, origin) == origin
            if not is_known and self._tokens.get(post.by) != (origin, post.token):
                self._ask_back(origin, post.by)
                return []
            found = self._begin(origin, post, now_ns)
        else:
            found = stream.hand_on_up_to(post.base)
            stream.heard_ns = now_ns
            if found:
                stream.hole_ns = now_ns
        stream = self._streams[origin]
        found += self.in_order(self._unopened.pop(origin, ()), now_ns)
        if post.given_up > stream.given_up:
            self._missed.append(Missed(post.by, post.given_up - stream.given_up))
            stream.given_up = post.given_up
        return found

    def _ask_back(self, origin: int, by: int) -> None:
        """Have who opens a stream say that it lives.

        The question stays the same: an answer would always come too late for the newest one.
        """
        asked, _ = self._tokens.get(by, (None, 0))
        if asked != origin:
            self._asked += 1
            self._tokens[by] = origin, self._asked

    def _begin(self, origin: int, post: Open, now_ns: int) -> list[NotificationMessage]:
        """Begin a stream, and end that of another life; return what has waited there."""
        found: list[NotificationMessage] = []
        older = self._newest.get(post.by)
        if older is not None and older != origin:
            self._dead.append(older)
            self._unopened.pop(older, None)
            self._due.pop(older, None)
            if older in self._streams:
                found = self._streams.pop(older).hand_on_up_to(_ALL)
            self._missed.append(Missed(post.by, None))
        self._tokens.pop(post.by, None)
        self._newest[post.by] = origin
        self._streams[origin] = self._stream(origin, post, now_ns)
        return found

    def _stream(self, origin: int, post: Open, now_ns: int) -> Stream:  # noqa: ARG002 - see lasting
        """Return a stream that begins."""
        return Stream(post.base, now_ns)

    # What goes

    def look(self, now_ns: int) -> list[NotificationMessage]:
        """Ask again for what is missing; return what has waited for what will not come."""
        found: list[NotificationMessage] = []
        for origin, stream in self._streams.items():
            if not stream.held:
                continue
            if self._is_given_up(stream, now_ns):
                found += stream.hand_on_up_to(max(stream.held))
                self._missed.append(Missed(origin >> LIFE_BITS, None))
                self._due[origin] = None
            elif now_ns - stream.asked_ns >= _ASK_AGAIN_NS:
                self._due[origin] = None
        return found

    def _is_given_up(self, stream: Stream, now_ns: int) -> bool:
        """Tell whether a hole will not be filled: later than the other end gives this one up."""
        return now_ns - stream.heard_ns >= 2 * self._give_up_ns

    def stood_still(self, now_ns: int) -> None:
        """Know that this broker has not looked for long: others were not silent, but unheard."""
        for stream in self._streams.values():
            stream.heard_ns = now_ns

    def take_posts(self, now_ns: int) -> list[Ack]:
        """Return what to acknowledge."""
        due, self._due = self._due, {}
        found = []
        for origin in due:
            stream = self._streams.get(origin)
            to, life = origin >> LIFE_BITS, origin & (1 << LIFE_BITS) - 1
            if stream is None:
                asked, token = self._tokens.get(to, (0, 0))
                token = token if asked == origin else 0
                found.append(Ack(to, self._place, self._life, life, None, token=token))
                continue
            wanted: tuple[tuple[int, int], ...] = ()
            if stream.held and now_ns - stream.hole_ns >= OVERTAKING_NS:
                wanted, stream.asked_ns = stream.wanted(), now_ns
            found.append(
                Ack(to, self._place, self._life, life, self._has(stream), stream.given_up, wanted)
            )
        return found

    def _has(self, stream: Stream) -> int:
        """Return up to where a stream is acknowledged."""
        return stream.last

    def take_missed(self) -> list[Missed]:
        """Return of whom clients miss notifications."""
        missed, self._missed = self._missed, []
        return missed
