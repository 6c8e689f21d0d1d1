"""What is written down about the queue of one link: every message, and sums over the run."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from octopis.broker.settings import LinkPolicy
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Message, NotificationMessage, Reason
from octopis.core.routing.messages import Flooded, Subscribe, Unsubscribe
from octopis.core.wire.published import Published

Row = tuple[Any, ...]
_KINDS = {Reason.SUBSCRIPTION: "subscription", Reason.SYNC: "sync"}
_NOTIFICATION = "notification"


class LinkLog:
    """Mirrors a link's queue; a row is made of each message when it has left it."""

    def __init__(  # noqa: PLR0913 - the facts of one link
        self,
        source: BrokerId,
        target: BrokerId,
        *,
        kind: str,
        clusters: int,
        algorithm: Algorithm,
        policy: LinkPolicy,
        write: Callable[[list[Row]], None] | None,
    ) -> None:
        """`write` takes rows of the table `ims`; None where it is not written."""
        self.ims = {"subscription": 0, "notification": 0, "sync": 0}
        self.length_max = self.waited_ns = self.dropped = self.cut = 0
        self.first_dropped_ns: int | None = None
        self._ends = (source.short, target.short, kind)
        self._clusters = clusters
        self._is_bid = algorithm is Algorithm.BID
        self._policy = policy
        self._write = write
        self._length = 0
        self._changed_ns = 0
        self._waiting: deque[tuple[Row, int, Row]] = deque()

    def enqueued(self, messages: list[Message], reasons: list[Reason], now_ns: int) -> None:
        """Messages are on the queue, for these reasons."""
        if self._write is not None:
            for ahead, (message, reason) in enumerate(
                zip(messages, reasons, strict=True), start=self._length
            ):
                self._waiting.append((self._about(message, reason), now_ns, (ahead, reason)))
        for reason in reasons:
            self.ims[_KINDS.get(reason, _NOTIFICATION)] += 1
        self._change(len(messages), now_ns)
        self.length_max = max(self.length_max, self._length)

    def left(self, count: int, now_ns: int) -> None:
        """Messages went over the link."""
        self._change(-count, now_ns)
        if self._write is not None:
            self._say([self._waiting.popleft() for _ in range(count)], now_ns, "left")

    def lost(self, count: int, now_ns: int) -> None:
        """The full queue dropped notifications, from the end that the policy says."""
        self._change(-count, now_ns)
        self.dropped += count
        if self.first_dropped_ns is None:
            self.first_dropped_ns = now_ns
        if self._write is not None:
            self._say(list(self._dropped(count)), None, "dropped")

    def went_down(self, now_ns: int) -> None:
        """The link is down, and what waited is lost."""
        waited = self._length
        self._change(-waited, now_ns)
        self.cut += waited
        if self._write is not None:
            self._say(list(self._waiting), None, "cut")
            self._waiting.clear()

    def summed(self) -> Row:
        """Return the row of the table `links`."""
        counts = self.ims["subscription"], self.ims["notification"]
        lost = self.dropped, self.cut
        # Which publishers have a high rate is known to scenarios, not to brokers.
        return (*self._ends, *counts, self.length_max, self.waited_ns, *lost, None)

    def _change(self, by: int, now_ns: int) -> None:
        self.waited_ns += self._length * (now_ns - self._changed_ns)
        self._changed_ns = now_ns
        self._length += by

    def _about(self, message: Message, reason: Reason) -> Row:
        """Return message kind, publisher, sequence, subscription, CBV_p and identifications."""
        kind = _KINDS.get(reason, _NOTIFICATION)
        if isinstance(message, NotificationMessage):
            notification = message.notification
            assert isinstance(notification, Published), "only what came over the wire is sent on"
            cbv_p = message.cbv_p.bits(self._clusters) if message.cbv_p else None
            bids = message.bids.bit_count() if self._is_bid else None
            return (kind, notification.publisher, notification.sequence, None, cbv_p, bids)
        subscription = None
        if isinstance(message, Subscribe):
            subscription = message.subscription.id
        elif isinstance(message, Unsubscribe):
            subscription = message.id
        elif isinstance(message, Flooded):
            subscription = message.removed if message.added is None else message.added.id
        return (kind, None, None, subscription, None, None)

    def _dropped(self, count: int) -> Iterator[tuple[Row, int, Row]]:
        """Remove and yield notifications from the front or the back; only these are dropped."""
        is_oldest = self._policy is LinkPolicy.DROP_OLDEST
        pop = self._waiting.popleft if is_oldest else self._waiting.pop
        kept = []
        for _ in repeat(None, count):
            while (entry := pop())[0][0] != _NOTIFICATION:
                kept.append(entry)
            yield entry
        if is_oldest:
            self._waiting.extendleft(reversed(kept))
        else:
            self._waiting.extend(reversed(kept))

    def _say(self, entries: list[tuple[Row, int, Row]], left_ns: int | None, fate: str) -> None:
        assert self._write is not None
        rows: list[Row] = []
        for about, enqueued_ns, (ahead, reason) in entries:
            when = enqueued_ns, left_ns, ahead
            ends = self._ends
            rows.append((*ends, *about[:4], *when, *about[4:], reason.value, None, fate))
        self._write(rows)
