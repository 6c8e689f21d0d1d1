"""When traced copies and deliveries leave their queues: what else is on a queue is only counted."""

import time
from collections import deque
from typing import NamedTuple

from octopis.broker.links.changes import Key
from octopis.broker.settings import LinkPolicy
from octopis.broker.telemetry.visits import Traced, Tracer, Visit
from octopis.broker.watchers import ClientWatcher, LinkWatcher
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Message, NotificationMessage, Reason


class _Copy(NamedTuple):
    number: int
    visit: Visit
    reason: Reason
    targets: int


class LinkSpans:
    """Follows traced copies on the queue of a link; `beside`: another who wants to know it all."""

    def __init__(
        self,
        neighbour: BrokerId,
        tracer: Tracer,
        policy: LinkPolicy,
        beside: LinkWatcher | None,
    ) -> None:
        self._to = neighbour.short
        self._tracer = tracer
        self._drops_oldest = policy is LinkPolicy.DROP_OLDEST
        self._beside = beside
        self._in = self._out = 0
        self._traced: deque[_Copy] = deque()

    def change(
        self, key: Key, message: Message, reason: Reason, obsolete: int, now_ns: int
    ) -> None:
        """Changes of tables are not traced."""
        if self._beside is not None:
            self._beside.change(key, message, reason, obsolete, now_ns)

    def changes_left(self, count: int, now_ns: int) -> None:
        """Changes of tables are not traced."""
        if self._beside is not None:
            self._beside.changes_left(count, now_ns)

    def enqueued(self, messages: list[Message], reasons: list[Reason], now_ns: int) -> None:
        """Notifications are on the queue, for these reasons."""
        if self._tracer.open:
            for number, (message, reason) in enumerate(
                zip(messages, reasons, strict=True), start=self._in + 1
            ):
                assert isinstance(message, NotificationMessage), "changes wait elsewhere"
                if isinstance(message.notification, Traced) and message.notification.visit:
                    visit, targets = message.notification.visit, message.targets.bit_count()
                    self._traced.append(_Copy(number, visit, reason, targets))
        self._in += len(messages)
        if self._beside is not None:
            self._beside.enqueued(messages, reasons, now_ns)

    def left(self, count: int, now_ns: int) -> None:
        """Notifications went over the link."""
        self._out += count
        self._take_front("sent", now_ns)
        if self._beside is not None:
            self._beside.left(count, now_ns)

    def lost(self, count: int, now_ns: int) -> None:
        """The full queue dropped notifications, from the end that the policy says."""
        if self._drops_oldest:
            self._out += count
            self._take_front("dropped", now_ns)
        else:
            self._in -= count
            while self._traced and self._traced[-1].number > self._in:
                self._is_out(self._traced.pop(), "dropped", now_ns)
        if self._beside is not None:
            self._beside.lost(count, now_ns)

    def went_down(self, now_ns: int, rerouted: int = 0) -> None:
        """The link is down: what waited is lost, or goes another way in a visit of its own."""
        self._out = self._in
        self._take_front("cut", now_ns)
        if self._beside is not None:
            self._beside.went_down(now_ns, rerouted)

    def _take_front(self, fate: str, now_ns: int) -> None:
        while self._traced and self._traced[0].number <= self._out:
            self._is_out(self._traced.popleft(), fate, now_ns)

    def _is_out(self, copy: _Copy, fate: str, now_ns: int) -> None:
        copy.visit.copy_is_out(fate, self._to, copy.reason, copy.targets, now_ns)


class _Delivery(NamedTuple):
    number: int
    notification: Traced
    begun_ns: int
    subscriptions: int


class ClientSpans:
    """Follows traced deliveries on the queue of a client, as LinkSpans does on that of a link."""

    def __init__(self, client: str, tracer: Tracer, beside: ClientWatcher | None) -> None:
        self._client = client
        self._tracer = tracer
        self._beside = beside
        self._in = self._out = 0
        self._traced: deque[_Delivery] = deque()

    def queued(self, notification: Notification, subscriptions: list[str]) -> None:
        """A notification is about to go on the client's queue."""
        self._in += 1
        if isinstance(notification, Traced):
            about = self._in, notification, time.time_ns(), len(subscriptions)
            self._traced.append(_Delivery(*about))
        if self._beside is not None:
            self._beside.queued(notification, subscriptions)

    def left(self, count: int) -> None:
        """Notifications went to the client."""
        self._out += count
        self._take_front()
        if self._beside is not None:
            self._beside.left(count)

    def dropped(self, count: int) -> None:
        """The oldest were dropped."""
        self._out += count
        self._take_front("the client is too slow: dropped")
        if self._beside is not None:
            self._beside.dropped(count)

    def ended(self) -> None:
        """The client is gone, and what waited with it."""
        self._out = self._in
        self._take_front("the client has left")
        if self._beside is not None:
            self._beside.ended()

    def _take_front(self, failure: str = "") -> None:
        while self._traced and self._traced[0].number <= self._out:
            _, notification, begun_ns, subscriptions = self._traced.popleft()
            about = {"octopis.client": self._client, "octopis.subscriptions": subscriptions}
            self._tracer.delivered(notification, begun_ns, about, failure)
