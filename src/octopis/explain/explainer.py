"""The explainer: it follows one notification through real brokers.

All subscriptions spread first, one after another and over idle links; then the links get the
state that was asked for, and the notification is published.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping

from octopis.core.model import BrokerId
from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.broker import Broker
from octopis.core.routing.messages import (
    Answer,
    Deliver,
    Effect,
    Enqueue,
    Message,
    NotificationMessage,
    Reason,
)
from octopis.explain.explanation import Hop, RouteExplanation
from octopis.explain.question import Question

Brokers = Mapping[BrokerId, Broker]
Copy = tuple[BrokerId, BrokerId, Message, Reason]
"""A message on its way: from broker, to broker, what it is, why it goes there."""


def explain(question: Question, algorithm: Algorithm) -> RouteExplanation:
    """Return where the notification goes under `algorithm`, and why."""
    scot = question.scot
    brokers = {broker: Broker(broker, scot, algorithm) for broker in scot.brokers}
    for name, broker, filter_ in question.subscribers:
        _settle(brokers, broker, brokers[broker].client_subscribes(name, 0, name, filter_))
    _load_links(brokers, question)
    published = brokers[question.publisher].client_publishes("", 0, [question.notification])
    hops = tuple(_follow(brokers, question, published))
    counters = [broker.counters for broker in brokers.values()]
    assert len(hops) == sum(each.notification_ims for each in counters)
    assert not any(each.lost_without_route or each.lost_on_down_links for each in counters)
    cases: Counter[str] = Counter()
    for each in counters:
        cases.update(each.cases)
    return RouteExplanation(
        question, algorithm, hops, _reached(published), dict(sorted(cases.items()))
    )


def _settle(brokers: Brokers, broker: BrokerId, effects: Iterable[Effect]) -> None:
    """Carry out effects until nothing is under way; all links are equally fast."""
    under_way = deque(_enqueued(broker, effects))
    while under_way:
        source, target, message, _ = under_way.popleft()
        under_way += _enqueued(target, _arrive(brokers, source, target, message))


def _load_links(brokers: Brokers, question: Question) -> None:
    for direction in question.overloaded | question.queue_lengths.keys():
        source, target = direction
        table = brokers[source].link_status
        wanted, status = question.status_of(direction, table.congestion_threshold), table[target]
        status.queue_length, status.q_in, status.q_out = (
            wanted.queue_length,
            wanted.q_in,
            wanted.q_out,
        )
        assert table.is_overloaded(target) == (direction in question.overloaded)


def _follow(brokers: Brokers, question: Question, published: Iterable[Effect]) -> Iterator[Hop]:
    copies: deque[tuple[int | None, Copy]] = deque(
        (None, copy) for copy in _enqueued(question.publisher, published)
    )
    number = 0
    # A broker is reached at most once, or under BID at most once for each host.
    hops_max = len(brokers) * max(1, len(question.subscribers))
    while copies:
        assert number < hops_max, "the notification loops"
        after, (source, target, message, reason) = copies.popleft()
        assert isinstance(message, NotificationMessage), "subscriptions have settled before"
        effects = _arrive(brokers, source, target, message)
        yield Hop(
            after,
            source,
            target,
            question.scot.link_kind(source, target),
            reason,
            message.cbv_p,
            message.bids,
            (source, target) in question.overloaded,
            _reached(effects),
        )
        copies += ((number, copy) for copy in _enqueued(target, effects))
        number += 1


def _arrive(brokers: Brokers, source: BrokerId, target: BrokerId, message: Message) -> list[Effect]:
    brokers[source].messages_left(target)
    return brokers[target].messages_arrived(source, [message])


def _enqueued(broker: BrokerId, effects: Iterable[Effect]) -> Iterator[Copy]:
    for effect in effects:
        assert not isinstance(effect, Answer) or effect.error is None, f"{effect} was checked"
        if isinstance(effect, Enqueue):
            for message, reason in zip(effect.messages, effect.reasons, strict=True):
                yield broker, effect.link, message, reason


def _reached(effects: Iterable[Effect]) -> tuple[str, ...]:
    return tuple(effect.client for effect in effects if isinstance(effect, Deliver))
