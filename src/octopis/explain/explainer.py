"""The explainer: it follows one notification through real brokers.

All subscriptions spread first, one after another and over idle links; then brokers die, links are
cut and queues fill as was asked for, and the notification is published.
"""

from collections import Counter
from typing import Any

from octopis.core.model import BrokerId
from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.broker import Broker
from octopis.core.routing.in_memory import Direction, InMemoryOverlay
from octopis.core.routing.messages import Effect, Message, NotificationMessage, Reason
from octopis.explain.explanation import Hop, Loss, RouteExplanation, Unreachable
from octopis.explain.question import Question


def explain(question: Question, algorithm: Algorithm) -> RouteExplanation:
    """Return where the notification goes under `algorithm`, and why."""
    overlay = _Watched(question, algorithm)
    before = len(overlay.sent)
    overlay.publish(question.publisher, question.notification)
    # A broker is reached at most once; under BID at most once for each host, and under TNR, where
    # copies go back to clusters that they left, twice for each.
    targets_max = max(1, len(question.subscribers))
    overlay.settle(steps_max=1 + 2 * len(overlay.brokers) * targets_max)
    numbers = range(before, len(overlay.sent))
    hops = tuple(_hop(overlay, question, number, before) for number in numbers)
    losses = tuple(_loss(question, each, before) for each in overlay.lost)
    unreachable = _unreachable(overlay, question, hops) if algorithm is Algorithm.TNR else ()
    cases: Counter[str] = Counter()
    for broker in overlay.brokers.values():
        cases.update(broker.counters.cases)
    _check(overlay, hops, losses, unreachable)
    return RouteExplanation(
        question,
        algorithm,
        hops,
        _reached(overlay, None),
        dict(sorted(cases.items())),
        losses,
        unreachable,
    )


class _Telling(Broker):
    """A broker that tells which copies it could not send."""

    def __init__(self, broker: BrokerId, *rest: Any, watched: "_Watched") -> None:
        super().__init__(broker, *rest)
        self._outbox.tell_lost = lambda link, message, reason: watched.lost.append(
            (watched.cause, broker, link, message, reason)
        )


class _Watched(InMemoryOverlay):
    """An overlay in the state that was asked for; it knows what led to each copy that is lost."""

    def __init__(self, question: Question, algorithm: Algorithm) -> None:
        self.lost: list[tuple[int | None, BrokerId, BrokerId, Message, Reason]] = []
        self.cause: int | None = None
        super().__init__(question.scot, algorithm, _Telling, watched=self)
        for name, broker, filter_ in question.subscribers:
            self.subscribe(broker, name, name, filter_)
            self.settle()
        for source, target in question.down:
            self.cut(source, target)
        self._load_links(question)
        self.cause = None

    def step(self, direction: Direction, count: int = 1) -> list[Effect]:
        """Let the next message of a direction arrive, and know that it led to what follows."""
        self.cause = self.queues[direction][0]
        return super().step(direction, count)

    def _load_links(self, question: Question) -> None:
        """Give the queues the state that was asked for."""
        for direction in question.overloaded | question.queue_lengths.keys():
            source, target = direction
            status = self.brokers[source].link_status[target]
            length, q_in, q_out = question.queue_of(direction, status.congestion_threshold)
            status.queue_length = length
            status.finish_window(q_in, q_out)
            assert status.is_overloaded == (direction in question.overloaded)


def _hop(overlay: InMemoryOverlay, question: Question, number: int, before: int) -> Hop:
    source, target, message, reason, cause = overlay.sent[number]
    assert isinstance(message, NotificationMessage), "subscriptions have settled before"
    clusters = question.scot.clusters
    return Hop(
        None if cause is None else cause - before,
        source,
        target,
        question.scot.link_kind(source, target),
        reason,
        message.cbv_p,
        question.scot.brokers_in(message.targets),
        tuple(each for each in clusters if message.tried >> each & 1),
        tuple(each for each in clusters if message.tried >> len(clusters) + each & 1),
        (source, target) in question.overloaded,
        _reached(overlay, number),
    )


def _loss(
    question: Question,
    lost: tuple[int | None, BrokerId, BrokerId, Message, Reason],
    before: int,
) -> Loss:
    cause, source, target, message, _ = lost
    assert isinstance(message, NotificationMessage), "subscriptions have settled before"
    return Loss(
        None if cause is None else cause - before,
        source,
        target,
        question.scot.link_kind(source, target),
        message.cbv_p,
        question.scot.brokers_in(message.targets),
    )


def _unreachable(
    overlay: InMemoryOverlay, question: Question, hops: tuple[Hop, ...]
) -> tuple[Unreachable, ...]:
    """Return where targets were left, as no link led on to them: those that no copy has taken."""
    host = question.publisher
    (targets,) = overlay.brokers[host].hosts_of([question.notification])
    left: dict[int | None, tuple[BrokerId, set[BrokerId]]] = {None: (host, targets - {host})}
    left |= {number: (hop.target, {*hop.targets} - {hop.target}) for number, hop in enumerate(hops)}
    for hop in hops:
        left[hop.after][1].difference_update(hop.targets)
    return tuple(
        Unreachable(after, broker, tuple(sorted(targets)))
        for after, (broker, targets) in left.items()
        if targets
    )


def _check(
    overlay: _Watched,
    hops: tuple[Hop, ...],
    losses: tuple[Loss, ...],
    unreachable: tuple[Unreachable, ...],
) -> None:
    """See to it that nothing is told that the brokers have not counted, nor anything left out."""
    counters = [broker.counters for broker in overlay.brokers.values()]
    assert len(hops) == sum(each.notification_ims for each in counters)
    assert len(losses) == sum(each.lost_on_down_links for each in counters)
    without_route = sum(each.lost_without_route for each in counters)
    assert sum(len(each.targets) for each in unreachable) == without_route


def _reached(overlay: InMemoryOverlay, cause: int | None) -> tuple[str, ...]:
    return tuple(each.client for each in overlay.delivered if each.cause == cause)
