"""A routing core whose driver is watched: what is traced gets its visits, all else goes as ever.

A broker that traces nothing has the plain core, and nothing of this in its way.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import structs

from octopis.broker.telemetry.identity import promising
from octopis.broker.telemetry.visits import Kind, Traced, Tracer, Visit
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Broker, Effect, Enqueue, Message, NotificationMessage
from octopis.core.routing.algorithms.target_routing import Accepted
from octopis.core.wire.published import Published

_NOBODY: list[Visit] = []


class TracedCore(Broker):
    """The routing core of one broker, and its tracer: what comes in is looked at once."""

    def __init__(self, tracer: Tracer, *about: Any, **options: Any) -> None:
        super().__init__(*about, **options)
        self._tracer = tracer

    # What comes

    def publishes_in_parts(
        self, notifications: Sequence[Notification], now_ns: int = 0
    ) -> Iterator[list[Effect]]:
        """Do what the core does."""
        notifications, visits = self._published(notifications)
        return self._watched(visits, super().publishes_in_parts(notifications, now_ns))

    def accept(self, notifications: Sequence[Notification], now_ns: int = 0) -> Accepted:
        """Do what the core does; the visits go on when what was accepted is released."""
        return super().accept(self._published(notifications)[0], now_ns)

    def release(self, accepted: Accepted, now_ns: int = 0) -> Iterator[list[Effect]]:
        """Do what the core does."""
        visits = _visits_of(accepted.batch) if self._tracer.open else _NOBODY
        return self._watched(visits, super().release(accepted, now_ns))

    def arrive_in_parts(
        self, link: BrokerId, messages: Sequence[Message], now_ns: int = 0
    ) -> Iterator[list[Effect]]:
        """Do what the core does."""
        messages, visits = self._looked_at(messages, Kind.HOP, link.short)
        return self._watched(visits, super().arrive_in_parts(link, messages, now_ns))

    # What goes once more

    def link_down(
        self, link: BrokerId, unsent: Sequence[Message] = (), now_ns: int = 0
    ) -> list[Effect]:
        """Do what the core does: what was on the queue goes another way."""
        unsent, visits = self._looked_at(unsent, Kind.REROUTE)
        return _all_of(self._watched(visits, iter([super().link_down(link, unsent, now_ns)])))

    def send_again(self, messages: Sequence[NotificationMessage], now_ns: int = 0) -> list[Effect]:
        """Do what the core does."""
        looked_at, visits = self._looked_at(messages, Kind.RESEND)
        again: Any = looked_at  # they are what they were
        return _all_of(self._watched(visits, iter([super().send_again(again, now_ns)])))

    # Visits

    def _published(
        self, notifications: Sequence[Notification]
    ) -> tuple[Sequence[Notification], list[Visit]]:
        found: dict[int, Traced] = {}
        for place in promising(notifications):
            each = notifications[place]
            assert isinstance(each, Published), "only what came over the wire is published"
            traced = self._tracer.traced(each, Kind.PUBLISH)
            if traced is not None:
                found[place] = traced
        if not found:
            return notifications, _NOBODY
        batch = [found.get(place, each) for place, each in enumerate(notifications)]
        return batch, [each.visit for each in found.values() if each.visit is not None]

    def _looked_at(
        self, messages: Sequence[Message], kind: Kind, sender: str = ""
    ) -> tuple[Sequence[Message], list[Visit]]:
        """Return messages with visits for those that are traced."""
        found: dict[int, Message] = {}
        visits = []
        carried = [
            each.notification if isinstance(each, NotificationMessage) else None
            for each in messages
        ]
        for place in promising(carried):
            message = messages[place]
            assert isinstance(message, NotificationMessage), "nothing else carries any"
            notification = message.notification
            assert isinstance(notification, Published), "only what came over the wire is sent"
            traced = self._tracer.traced(notification, kind, message, sender)
            if traced is not None and traced.visit is not None:
                found[place] = structs.replace(message, notification=traced)
                visits.append(traced.visit)
        if not found:
            return messages, _NOBODY
        return [found.get(place, each) for place, each in enumerate(messages)], visits

    @staticmethod
    def _watched(visits: list[Visit], parts: Iterator[list[Effect]]) -> Iterator[list[Effect]]:
        """Let visits know what is sent, and when that is all."""
        return _followed(visits, parts) if visits else parts


def _followed(visits: list[Visit], parts: Iterator[list[Effect]]) -> Iterator[list[Effect]]:
    try:
        for effects in parts:
            for copy in _copies(effects):
                copy.will_send()
            yield effects
    finally:
        for visit in visits:
            visit.routed()


def _copies(effects: Iterable[Effect]) -> Iterator[Visit]:
    """Yield the visit of each traced copy that is to go on a queue."""
    for effect in effects:
        if isinstance(effect, Enqueue):
            yield from _visits_of(effect.messages)


def _visits_of(messages: Iterable[Message]) -> list[Visit]:
    return [
        message.notification.visit
        for message in messages
        if isinstance(message, NotificationMessage)
        and isinstance(message.notification, Traced)
        and message.notification.visit is not None
    ]


def _all_of(parts: Iterator[list[Effect]]) -> list[Effect]:
    return [effect for effects in parts for effect in effects]
