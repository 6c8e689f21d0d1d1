from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from octopis.core.model import BrokerId, Notification
from octopis.core.routing import (
    Algorithm,
    Broker,
    Effect,
    Enqueue,
    Message,
    NotificationMessage,
    Reason,
)
from octopis.core.routing.in_memory import InMemoryOverlay
from octopis.core.topology import LinkKind, from_catalogue, grow
from octopis.explain.explainer import explain
from octopis.explain.explanation import RouteExplanation
from octopis.explain.question import Question
from support.network import Network
from support.notation import broker, links, subscriber

SCOT_7 = from_catalogue("figure-7").scot


def random_question(seed: int) -> Question:
    random = Random(seed)  # noqa: S311 - chooses a test case, keeps no secret
    scot = grow(random.randint(1, 24), random.randint(1, 4), random.randint(1, 3))
    directions = [(one, other) for one in scot.brokers for other in scot.neighbours(one)]
    return Question(
        scot,
        random.choice(scot.brokers),
        Notification({"price": 12}),
        tuple(
            subscriber(
                f"S{number}", random.choice(scot.brokers).short, f"price > {random.choice([5, 20])}"
            )
            for number in range(random.randint(0, 8))
        ),
        frozenset(link for link in directions if random.random() < 0.3),
    )


def with_faults(seed: int) -> Question:
    """Return a random question without overload, in which something is dead or cut."""
    asked, random = random_question(seed), Random(seed)  # noqa: S311
    others = [each for each in asked.scot.brokers if each != asked.publisher]
    joined = [link[:2] for link in (*asked.scot.acols, *asked.scot.icols)]
    return replace(
        asked,
        overloaded=frozenset(),
        dead=frozenset(random.sample(others, min(2, len(others)))),
        cut=frozenset(random.sample(joined, min(2, len(joined)))),
    )


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("seed", range(12))
def test_with_faults_it_is_what_brokers_do_under_another_driver(seed: int, algorithm: Algorithm):
    question = with_faults(seed)
    network = Network(question.scot, algorithm)
    for name, place, wanted in question.subscribers:
        network.subscribe(place, name, name, wanted)
        network.settle()
    for one, other in question.down:
        network.cut(one, other)
    network.publish(question.publisher, question.notification)
    network.settle()
    answer = explain(question, algorithm)
    assert bool(answer.lost) == bool(answer.losses or answer.unreachable)
    if algorithm is not Algorithm.BID:  # its trees depend on the order of arrival
        assert set(answer.paths) == {each.client for each in network.delivered}
        counters = [each.counters for each in network.brokers.values()]
        assert len(answer.losses) == sum(each.lost_on_down_links for each in counters)
        stranded = sum(each.lost_without_route for each in counters)
        assert sum(len(each.targets) for each in answer.unreachable) == stranded


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("seed", range(15))
def test_explanation_is_what_brokers_do_under_another_driver(seed: int, algorithm: Algorithm):
    question = random_question(seed)
    network = Network(question.scot, algorithm)
    for name, place, wanted in question.subscribers:
        network.subscribe(place, name, name, wanted)
    network.settle()
    for source, target in question.overloaded:
        network.brokers[source].link_status[target].queue_length = 11
    network.publish(question.publisher, question.notification)
    network.settle()
    answer = explain(question, algorithm)
    matching = {each.name for each in question.subscribers if each.filter.matches({"price": 12})}
    assert set(answer.paths) == matching == {each.client for each in network.delivered}
    if algorithm is not Algorithm.BID:  # its trees depend on the order of arrival
        sent = [each for each in network.sent if isinstance(each.message, NotificationMessage)]
        assert sorted((each.source, each.target, each.message.cbv_p) for each in sent) == sorted(
            (hop.source, hop.target, hop.cbv_p) for hop in answer.hops
        )


def test_hops_follow_one_another():
    question = random_question(7)
    for algorithm in Algorithm:
        answer = explain(question, algorithm)
        for number, hop in enumerate(answer.hops):
            if hop.after is None:
                assert hop.source == question.publisher
            else:
                assert hop.after < number
                assert answer.hops[hop.after].target == hop.source


def test_hop_tells_link_kind_reason_and_overload():
    question = Question(
        SCOT_7,
        broker("b,2"),
        Notification({}),
        (subscriber("S1", "c,0"), subscriber("S2", "b,2")),
        frozenset(links("b,2>b,0")),
    )
    answer = explain(question, Algorithm.SNR)
    first, second = answer.hops
    assert (first.kind, first.reason, first.overloaded) == (LinkKind.ICOL, Reason.MATCH, True)
    assert (second.kind, second.after, second.overloaded) == (LinkKind.ACOL, 0, False)
    assert (first.reached, second.reached, answer.reached_at_host) == ((), ("S1",), ("S2",))


ALL_OF_C = tuple(subscriber(f"S{place}", f"c,{place}") for place in range(3))


def ways(answer: RouteExplanation) -> list[str]:
    return [
        f"{hop.source.short}>{hop.target.short} {hop.reason.value}: "
        f"{' '.join(each.short for each in hop.targets)}; {hop.tried} {hop.tried_down}"
        for hop in answer.hops
    ]


def test_target_routing_tells_targets_tried_clusters_and_reasons():
    calm = Question(SCOT_7, broker("a,2"), Notification({}), ALL_OF_C)
    assert ways(explain(calm, Algorithm.TNR)) == [
        "a,2>b,2 target: c,0 c,1 c,2; () ()",
        "b,2>c,2 target: c,0 c,1 c,2; () ()",
        "c,2>c,0 late: c,0; () ()",
        "c,2>c,1 late: c,1; () ()",
    ]
    busy = replace(calm, overloaded=frozenset(links("a,2>b,2")))
    assert ways(explain(busy, Algorithm.TNR))[:2] == [
        "a,2>a,0 around overload: c,0 c,1 c,2; (2,) ()",
        "a,0>b,0 target: c,0 c,1 c,2; () ()",
    ]
    cut = replace(calm, cut=frozenset(links("b,2>a,2")))
    assert ways(explain(cut, Algorithm.TNR))[0] == "a,2>a,0 around fault: c,0 c,1 c,2; (2,) (2,)"
    full = replace(calm, overloaded=frozenset(links("a,2>b,2 a,2>a,0 a,2>a,1")))
    assert ways(explain(full, Algorithm.TNR))[0] == "a,2>b,2 waits: c,0 c,1 c,2; () ()"
    one = replace(calm, subscribers=ALL_OF_C[:1])
    assert ways(explain(one, Algorithm.TNR))[0] == "a,2>a,0 early: c,0; () ()"


def test_copies_for_links_that_are_down_are_told_with_what_led_to_them():
    question = Question(
        SCOT_7,
        broker("a,2"),
        Notification({}),
        ALL_OF_C,
        dead=frozenset([broker("b,2")]),
        cut=frozenset(links("b,0>c,0")),
    )
    answer = explain(question, Algorithm.SNR)
    lost = {(loss.source, loss.target): loss.after for loss in answer.losses}
    (at_b0,) = [place for place, hop in enumerate(answer.hops) if hop.target == broker("b,0")]
    assert lost == {links("a,2>b,2").pop(): None, links("b,0>c,0").pop(): at_b0}
    assert (answer.lost, list(answer.paths)) == (["S0", "S2"], ["S1"])
    around = explain(question, Algorithm.TNR)
    assert (around.lost, around.losses, around.unreachable) == ([], (), ())


def test_targets_that_cannot_be_reached_are_told_where_they_were_left():
    dead = frozenset([broker("c,2")])
    question = Question(SCOT_7, broker("c,0"), Notification({}), ALL_OF_C, dead=dead)
    answer = explain(question, Algorithm.TNR)
    (left,) = answer.unreachable
    assert left.after is not None
    assert (left.broker, left.targets) == (answer.hops[left.after].target, (broker("c,2"),))
    assert answer.lost == ["S2"]


def test_nobody_interested_costs_nothing():
    question = Question(
        SCOT_7, broker("b,2"), Notification({}), (subscriber("S1", "c,0", "price > 1"),)
    )
    for algorithm in Algorithm:
        answer = explain(question, algorithm)
        assert (answer.ims, answer.paths, answer.cases) == (0, {}, {})


def test_queue_lengths_choose_among_free_icols():
    scot = grow(8, 4)
    host, overloaded, *free = scot.region(scot.regions[0])
    subscribers = tuple(subscriber(each.short, each.short) for each in (overloaded, *free))
    for waiting, carrier in (free, reversed(free)):
        question = Question(
            scot,
            host,
            Notification({}),
            subscribers,
            frozenset([(host, overloaded)]),
            {(host, waiting): 3},
        )
        carrying = [hop.target for hop in explain(question, Algorithm.DNR).hops if hop.cbv_p]
        assert carrying == [carrier]


def test_subscriptions_leave_the_queues_before_the_notification_comes():
    many = tuple(subscriber(f"S{number}", "b,2") for number in range(30))
    question = Question(SCOT_7, broker("b,0"), Notification({}), many)
    answer = explain(question, Algorithm.DNR)
    assert (answer.ims, answer.cases) == (1, {})
    back = Question(SCOT_7, broker("b,2"), Notification({}), (*many, subscriber("S", "b,0")))
    assert explain(back, Algorithm.DNR).cases == {}


def test_a_loop_in_the_core_is_found(monkeypatch: pytest.MonkeyPatch):
    take_in = Broker.messages_arrived

    def send_back(
        self: Broker, link: BrokerId, messages: list[Message], now_ns: int = 0
    ) -> list[Effect]:
        if not isinstance(messages[0], NotificationMessage):
            return take_in(self, link, messages)
        self.link_status[link].entered(now_ns)
        return [Enqueue(link, messages, [Reason.MATCH])]

    monkeypatch.setattr(Broker, "messages_arrived", send_back)
    question = Question(SCOT_7, broker("b,2"), Notification({}), (subscriber("S", "b,0"),))
    with pytest.raises(AssertionError, match="there is a loop"):
        explain(question, Algorithm.SNR)


def test_a_long_way_is_no_trouble():
    scot = grow(1_500, 1, 1)
    first, last = scot.brokers[0], scot.brokers[-1]
    question = Question(scot, first, Notification({}), (subscriber("S", last.short),))
    answer = explain(question, Algorithm.SNR)
    assert len(answer.paths["S"]) == 1_500


class _Unsearched(dict[Any, Any]):
    """Queues that nobody goes through one by one."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("to look at all queues for each message makes work of work")


def test_next_message_is_found_without_a_look_at_all_queues():
    network = InMemoryOverlay(SCOT_7, Algorithm.BID)
    network.queues = _Unsearched()
    network.subscribe(SCOT_7.brokers[0], "S", "S", "TRUE")
    network.settle()
    assert len(network.sent) > len(SCOT_7.brokers)
    assert not network.queues
