"""The queues of links and clients, mirrored, so that rows can be made of what went through them."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import repeat

from octopis.broker.links.changes import Key
from octopis.broker.settings import LinkPolicy
from octopis.broker.tracing import Row
from octopis.core.model import BrokerId, Notification
from octopis.core.model.notification import INTEGER_MAX, INTEGER_MIN
from octopis.core.routing import Algorithm, Message, NotificationMessage, Reason
from octopis.core.routing.messages import Flooded, HostChange, Subscribe, Unsubscribe
from octopis.core.wire.published import Published

_KINDS = {Reason.SUBSCRIPTION: "subscription", Reason.SYNC: "sync"}
_NOTIFICATION = "notification"


class LinkLog:
    """The queue of a link, mirrored: a row is made of each message when it is out again."""

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
        self._changes: OrderedDict[Key, tuple[Row, int, Row]] = OrderedDict()

    def change(
        self, key: Key, message: Message, reason: Reason, obsolete: int, now_ns: int
    ) -> None:
        """A change waits; so many are obsolete by it (2: what it takes back, and itself)."""
        if self._write is not None:
            earlier = self._changes.get(key)
            entry = (self._about(message, reason), now_ns, (self._length, reason))
            if obsolete and earlier is not None:
                self._say([earlier], None, "replaced")
            if obsolete > (earlier is not None):
                self._changes.pop(key, None)
                self._say([entry], None, "replaced")
            else:
                self._changes[key] = entry
                if isinstance(key, tuple):
                    self._changes.move_to_end(key)
        self.ims[_KINDS.get(reason, _NOTIFICATION)] += 1
        self._change(1 - obsolete, now_ns)
        self.length_max = max(self.length_max, self._length)

    def changes_left(self, count: int, now_ns: int) -> None:
        """Changes went over the link."""
        self._change(-count, now_ns)
        if self._write is not None:
            entries = [self._changes.popitem(last=False)[1] for _ in range(count)]
            self._say(entries, now_ns, "left")

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

    def went_down(self, now_ns: int, rerouted: int = 0) -> None:
        """The link is down: so many of what waited go another way, and the rest is lost."""
        waited = self._length
        self._change(-waited, now_ns)
        self.cut += waited - rerouted
        if self._write is not None:
            self._say([*self._changes.values(), *self._waiting], None, "cut")
            self._changes.clear()
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
            bids = message.targets.bit_count() if self._is_bid else None
            sequence = notification.sequence
            return (kind, notification.publisher, sequence, None, cbv_p, bids)
        subscription = None
        if isinstance(message, Subscribe):
            subscription = message.subscription.id
        elif isinstance(message, Unsubscribe):
            subscription = message.id
        elif isinstance(message, Flooded):
            subscription = message.removed if message.added is None else message.added.id
        elif isinstance(message, HostChange):
            subscription = message.added[0].id if message.added else message.removed[0]
        return (kind, None, None, subscription, None, None)

    def _dropped(self, count: int) -> Iterator[tuple[Row, int, Row]]:
        """Remove and yield notifications from the front or the back."""
        is_oldest = self._policy is LinkPolicy.DROP_OLDEST
        pop = self._waiting.popleft if is_oldest else self._waiting.pop
        for _ in repeat(None, count):
            yield pop()

    def _say(self, entries: list[tuple[Row, int, Row]], left_ns: int | None, fate: str) -> None:
        assert self._write is not None
        rows: list[Row] = []
        for about, enqueued_ns, (ahead, reason) in entries:
            when = enqueued_ns, left_ns, ahead
            ends = self._ends
            rows.append((*ends, *about[:4], *when, *about[4:], reason.value, None, fate))
        self._write(rows)


class ClientLog:
    """The queue of a client, mirrored: a row is made of each delivery when it goes out."""

    def __init__(self, broker: str, write: Callable[[list[Row]], None]) -> None:
        self._broker = broker
        self._write = write
        self._waiting: deque[tuple[str, int, int, list[str]]] = deque()

    def queued(self, notification: Notification, subscriptions: list[str]) -> None:
        """A notification is about to go on the client's queue."""
        assert isinstance(notification, Published), "only what came over the wire is delivered"
        known = notification.publisher, notification.sequence, notification.intended_ns
        self._waiting.append((*known, subscriptions))

    def left(self, count: int) -> None:
        """Notifications went to the client."""
        now_ns = time.time_ns()
        self._write(
            [
                (*about, subscription, self._broker, now_ns, _fitting(now_ns - intended_ns), None)
                for *about, intended_ns, subscriptions in self._taken(count)
                for subscription in subscriptions
            ]
        )

    def dropped(self, count: int) -> None:
        """The oldest were dropped."""
        self._taken(count)

    def ended(self) -> None:
        """The client is gone: what waited was not delivered, and has no row."""
        self._waiting.clear()

    def _taken(self, count: int) -> list[tuple[str, int, int, list[str]]]:
        return [self._waiting.popleft() for _ in range(count)]


def _fitting(number: int) -> int:
    """Return a delay as a column can hold it: by a time that a client chose it may be longer."""
    return max(INTEGER_MIN, min(INTEGER_MAX, number))
