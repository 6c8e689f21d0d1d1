"""The explainer: it follows one notification through real brokers.

All subscriptions spread first, one after another and over idle links; then the links get the
state that was asked for, and the notification is published.
"""

from collections import Counter

from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.in_memory import InMemoryOverlay
from octopis.core.routing.messages import NotificationMessage
from octopis.explain.explanation import Hop, RouteExplanation
from octopis.explain.question import Question


def explain(question: Question, algorithm: Algorithm) -> RouteExplanation:
    """Return where the notification goes under `algorithm`, and why."""
    overlay = InMemoryOverlay(question.scot, algorithm)
    for name, broker, filter_ in question.subscribers:
        overlay.subscribe(broker, name, name, filter_)
        overlay.settle()
    _load_links(overlay, question)
    before = len(overlay.sent)
    overlay.publish(question.publisher, question.notification)
    # A broker is reached at most once, or under BID at most once for each host.
    overlay.settle(steps_max=1 + len(overlay.brokers) * max(1, len(question.subscribers)))
    counters = [broker.counters for broker in overlay.brokers.values()]
    assert len(overlay.sent) - before == sum(each.notification_ims for each in counters)
    assert not any(each.lost_without_route or each.lost_on_down_links for each in counters)
    cases: Counter[str] = Counter()
    for each in counters:
        cases.update(each.cases)
    numbers = range(before, len(overlay.sent))
    hops = tuple(_hop(overlay, question, number, before) for number in numbers)
    at_host = _reached(overlay, None)
    return RouteExplanation(question, algorithm, hops, at_host, dict(sorted(cases.items())))


def _load_links(overlay: InMemoryOverlay, question: Question) -> None:
    """Give the queues the state that was asked for."""
    for direction in question.overloaded | question.queue_lengths.keys():
        source, target = direction
        status = overlay.brokers[source].link_status[target]
        length, q_in, q_out = question.queue_of(direction, status.congestion_threshold)
        status.queue_length = length
        status.finish_window(q_in, q_out)
        assert status.is_overloaded == (direction in question.overloaded)


def _hop(overlay: InMemoryOverlay, question: Question, number: int, before: int) -> Hop:
    source, target, message, reason, cause = overlay.sent[number]
    assert isinstance(message, NotificationMessage), "subscriptions have settled before"
    return Hop(
        None if cause is None else cause - before,
        source,
        target,
        question.scot.link_kind(source, target),
        reason,
        message.cbv_p,
        question.scot.brokers_in(message.targets),
        (source, target) in question.overloaded,
        _reached(overlay, number),
    )


def _reached(overlay: InMemoryOverlay, cause: int | None) -> tuple[str, ...]:
    return tuple(each.client for each in overlay.delivered if each.cause == cause)
