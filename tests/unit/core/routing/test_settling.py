"""When a broker says that all is settled, every living broker knows what was accepted before."""

from random import Random

import pytest

from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Mark
from octopis.core.routing.marks import Confirmed, Marks
from octopis.core.topology import from_catalogue
from octopis.errors import NotSettled
from support.live import line
from support.settling import SettlingOverlay

ALGORITHMS = pytest.mark.parametrize("algorithm", Algorithm, ids=lambda each: each.value)


def lacking(network: SettlingOverlay, subscription: str) -> list[str]:
    return [
        broker.short
        for broker, core in network.brokers.items()
        if core.table.get(subscription) is None
    ]


def missing(network: SettlingOverlay, request: str) -> tuple[str, ...]:
    error = network.answers[request]
    assert isinstance(error, NotSettled)
    return error.brokers


@ALGORITHMS
@pytest.mark.parametrize("seed", range(6))
def test_settled_means_that_everybody_knows_everything_accepted_before(
    algorithm: Algorithm, seed: int
):
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    network = SettlingOverlay(from_catalogue("figure-7").scot, algorithm)
    asked: dict[str, list[str]] = {}
    accepted: list[str] = []
    for number in range(60):
        host = random.choice(network.scot.brokers)
        accepted.append(f"s{number}")
        network.subscribe(host, "client", accepted[-1], f"x = {number}")
        if not number % 5:
            asked[f"r{number}"] = list(accepted)
            network.ask(random.choice(network.scot.brokers), f"r{number}")
        for _ in range(random.randint(0, 60)):
            network.one(random)
        network.tick(10)
        for name in [each for each in asked if each in network.answers]:
            assert network.answers[name] is None
            for each in asked.pop(name):
                assert lacking(network, each) == []
    for name in asked:
        network.run(random, until=name)
        assert network.answers[name] is None


@ALGORITHMS
def test_settled_also_waits_for_the_ends_of_subscriptions(algorithm: Algorithm):
    network = SettlingOverlay(from_catalogue("figure-7").scot, algorithm)
    host, other = network.scot.broker("a,0"), network.scot.broker("c,2")
    network.subscribe(host, "client", "s", "x = 1")
    network.run(ms=100)
    network.unsubscribe(host, "client", "s")
    network.ask(other, "r")
    network.run(Random(1), until="r")  # noqa: S311 - repeatable on purpose
    assert network.answers["r"] is None
    assert all(core.table.get("s") is None for core in network.brokers.values())


@ALGORITHMS
def test_changes_of_others_without_end_hold_nothing_up(algorithm: Algorithm):
    network = SettlingOverlay(line(3, 2), algorithm)
    network.subscribe(network.scot.broker("a,0"), "client", "s", "x = 1")
    network.ask(network.scot.broker("c,1"), "r", limit_ms=2_000)
    for number in range(150):
        for broker in network.scot.brokers:
            network.subscribe(broker, "busy", f"{broker.short}/{number}", "x = 2")
        for _ in range(80):
            network.one()
        network.tick(10)
    assert network.answers["r"] is None


def test_nothing_is_marked_where_nothing_has_changed_since():
    network = SettlingOverlay(line(3, 2), Algorithm.SNR)
    network.subscribe(network.scot.broker("a,0"), "client", "s", "x = 1")
    network.ask(network.scot.broker("c,1"), "first")
    network.run(until="first")
    marks = network.links_used(Mark).total()
    assert marks == len(network.scot.brokers) - 1  # one on each link of one tree
    network.ask(network.scot.broker("b,0"), "second")
    network.run(until="second")
    assert network.answers == {"first": None, "second": None}
    assert network.links_used(Mark).total() == marks


def test_brokers_behind_a_cut_link_are_named():
    network = SettlingOverlay(line(3, 2), Algorithm.SNR)
    here, far = network.scot.broker("a,0"), network.scot.broker("c,1")
    network.cut(here, network.scot.broker("b,0"))
    network.subscribe(here, "client", "s", "x = 1")
    network.ask(far, "r", limit_ms=1_500)
    network.run(until="r")
    assert missing(network, "r") == tuple(lacking(network, "s"))
    assert missing(network, "r") == ("b,0", "b,1", "c,0", "c,1")


@ALGORITHMS
def test_who_is_gone_is_not_waited_for(algorithm: Algorithm):
    network = SettlingOverlay(line(3, 2), algorithm)
    network.restart(network.scot.broker("c,0"))  # all its links are down
    network.subscribe(network.scot.broker("a,0"), "client", "s", "x = 1")
    network.ask(network.scot.broker("b,1"), "r", limit_ms=1_500)
    network.run(until="r")
    if algorithm in (Algorithm.BID, Algorithm.TNR):
        assert network.answers["r"] is None
        assert lacking(network, "s") == ["c,0"]
    else:  # c,1 hears of subscriptions of cluster 0 from c,0 alone
        assert missing(network, "r") == ("c,1",)


@ALGORITHMS
def test_a_mark_that_was_lost_is_made_again(algorithm: Algorithm):
    network = SettlingOverlay(line(3), algorithm)
    a, b, c = network.scot.brokers
    network.subscribe(a, "client", "s", "x = 1")
    network.ask(a, "r", limit_ms=5_000)
    network.run(Random(3), ms=10)  # noqa: S311 - repeatable on purpose
    network.cut(b, c)  # with whatever was on its way
    network.run(ms=300)
    network.restore(b, c)
    network.run(until="r")
    assert network.answers["r"] is None
    assert lacking(network, "s") == []


@ALGORITHMS
def test_what_was_confirmed_before_a_restart_counts_no_more(algorithm: Algorithm):
    network = SettlingOverlay(line(4), algorithm)
    a, b, c, d = network.scot.brokers
    network.subscribe(a, "client", "s", "x = 1")
    network.ask(a, "first")
    network.run(until="first")
    network.tick(1_000)
    network.restart(b)
    network.restore(b, c)  # under SNR, b has nothing to tell, so c and d forget s for a while
    for _ in range(20):
        network.one()
    network.restore(a, b)
    network.ask(d, "r")
    while "r" not in network.answers:
        for direction in sorted(network.past):  # queues stand still, so nobody hears of s again
            network.hear(direction)
        network.tick(10)
        if network.now_ns > 5_000_000_000:
            break
    assert network.answers.get("r") is None
    if algorithm is not Algorithm.BID:
        assert "r" not in network.answers
    network.run(until="r")
    assert network.answers["r"] is None
    assert lacking(network, "s") == []


def test_requests_that_come_while_one_is_asked_are_answered_by_the_next():
    network = SettlingOverlay(line(3), Algorithm.SNR)
    a, _, c = network.scot.brokers
    network.ask(a, "first")
    network.subscribe(c, "client", "s", "x = 1")
    network.ask(a, "second")
    network.run(until="first")
    assert "second" not in network.answers
    network.run(until="second")
    assert network.answers["second"] is None
    assert lacking(network, "s") == []


def test_a_request_that_nobody_waits_for_is_forgotten():
    network = SettlingOverlay(line(3), Algorithm.SNR)
    a, b, _ = network.scot.brokers
    network.cut(a, b)
    network.subscribe(a, "client", "s", "x = 1")
    network.restore(a, b)
    network.ask(a, "r")
    network.settlings[a].forget("r")
    network.run(ms=1_000)
    assert network.answers == {}
    assert network.settlings[a].next_ns is None


def test_a_late_confirmation_of_an_older_mark_goes_on_its_way():
    host, one, other = BrokerId("a", 0), BrokerId("b", 0), BrokerId("c", 0)
    marks = Marks(BrokerId("d", 0), 0)
    marks.came(host, 7, one)
    marks.confirm(Confirmed(host, 7, 0b1))
    marks.came(host, 8, other)
    marks.confirm(Confirmed(host, 7, 0b10))
    marks.confirm(Confirmed(host, 8, 0b100))
    found = [(each.number, each.brokers) for _, each in marks.take()]
    assert found == [(7, 0b11), (8, 0b100)]
    marks.confirm(Confirmed(host, 9, 0b1))  # a mark that never came
    assert marks.take() == []


def test_confirmations_of_marks_that_were_never_made_count_nothing():
    marks = Marks(BrokerId("a", 0), 10)
    number = marks.make(0)
    for wrong in (number - 1, number + 1):
        marks.confirm(Confirmed(BrokerId("a", 0), wrong, 0b1))
    assert marks.known_by(0) == 0
    marks.confirm(Confirmed(BrokerId("a", 0), number, 0b10))
    assert marks.known_by(number) == 0b10
    marks.forget_before(number + 1)
    assert marks.known_by(0) == 0
