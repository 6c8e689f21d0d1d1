from random import Random

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
from octopis.core.topology import LinkKind, from_catalogue, grow
from octopis.explain.explainer import explain
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
