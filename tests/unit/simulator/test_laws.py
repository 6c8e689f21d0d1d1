"""Each law by itself, on facts made by hand; tests/simulation breaks them in whole runs."""

from collections.abc import Callable

import pytest

from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm, Reason
from octopis.errors import LawViolated
from octopis.scenario.tables import Publisher, Subscriber
from octopis.simulator import laws as laws_module
from octopis.simulator.audience import Audience, Broadcast, Copy, Flight, Matcher
from octopis.simulator.laws import Laws, path_max
from octopis.simulator.network import Network, Station, Waiting
from support.overlays import A0, A1, B0, C0, CHAIN

SUBSCRIBERS = [
    Subscriber("one", "c1", A1, parse_filter("x = 1"), 0),
    Subscriber("two", "c2", C0, parse_filter("x >= 1"), 0),
]


class Court:
    """The laws, and all that they are told about."""

    def __init__(self, algorithm: Algorithm = Algorithm.SNR) -> None:
        self.network = Network(CHAIN, 100, exact=False)
        publishers = [Publisher("p", A0, False)]
        self.laws = Laws(self.network, algorithm, 42, publishers, SUBSCRIBERS)
        self.a0, self.a1, self.b0, self.c0 = map(self.network.by_broker.get, (A0, A1, B0, C0))

    def audience(self, *values: int) -> Audience:
        hosts = [self.network.by_broker[each.broker].index for each in SUBSCRIBERS]
        matcher = Matcher(SUBSCRIBERS, hosts, len(self.network.stations))
        audience = matcher.audience([{"x": value} for value in values])
        audience.flights = [
            Flight(0, sequence, self.a0, 0, audience, sequence, targets, completed_ns=99)
            for sequence, targets in enumerate(audience.targets())
        ]
        return audience

    def flight(self) -> Flight:
        return self.audience(1).flights[0]


@pytest.fixture
def court() -> Court:
    return Court()


def violation(broken: Callable[[], None]) -> LawViolated:
    with pytest.raises(LawViolated) as caught:
        broken()
    assert caught.value.seed == 42
    return caught.value


@pytest.mark.parametrize(
    ("algorithm", "links"),
    [
        (Algorithm.SNR, 2 + 1),  # the tree's diameter, and one iCOL
        (Algorithm.DNR, 3 * (2 + 1) - 1),  # the diameter in every cluster, and the iCOLs between
        (Algorithm.BID, 9 - 1),  # every broker once
    ],
)
def test_longest_path_that_an_algorithm_allows(algorithm: Algorithm, links: int):
    assert path_max(Network(CHAIN, 0, exact=False), algorithm) == links


def test_path_may_be_as_long_as_allowed_and_no_longer(court: Court):
    flight = court.flight()
    court.laws.served_notification(court.a0, Copy(flight, 3, 0, Reason.MATCH), 5)
    found = violation(
        lambda: court.laws.served_notification(court.b0, Copy(flight, 4, 0, Reason.MATCH), 6)
    )
    assert (found.law, found.time_ns, found.broker) == ("path bounds", 6, "b,0")


def test_second_copy_at_a_broker_is_a_loop(court: Court):
    flight, other = court.audience(1, 1).flights
    for each in (flight, other):
        court.laws.served_notification(court.a0, Copy(each, 1, 0, Reason.MATCH), 5)
    again = Copy(other, 1, 0, Reason.MATCH)
    found = violation(lambda: court.laws.served_notification(court.a0, again, 7))
    assert (found.law, found.broker, found.notification) == ("no loop", "a,0", ("p", 1))


def test_identification_may_not_come_twice_to_a_broker_but_others_may():
    court = Court(Algorithm.BID)
    flight = court.flight()
    for mask in (0b01, 0b10):
        court.laws.served_notification(court.b0, Copy(flight, 1, 0, Reason.MATCH, mask), 5)
    again = Copy(flight, 1, 0, Reason.MATCH, 0b110)
    assert violation(lambda: court.laws.served_notification(court.b0, again, 6)).law == "no loop"


def test_publishers_broker_gets_a_notification_from_its_client_once():
    court = Court(Algorithm.BID)
    first = Copy(court.flight(), 0, 0, Reason.MATCH)
    court.laws.served_notification(court.a0, first, 5)
    assert violation(lambda: court.laws.served_notification(court.a0, first, 6)).law == "no loop"


def broadcast(station: Station) -> Broadcast:
    return Broadcast(1, station, 0)


def test_subscription_is_stored_once(court: Court):
    begun = broadcast(court.a0)
    court.laws.stored(begun, court.b0, 1, 5)
    found = violation(lambda: court.laws.stored(begun, court.b0, 1, 6))
    assert (found.law, found.subscription, found.time_ns) == ("no duplicate", "two", 6)


@pytest.mark.parametrize("hops", [1, 3])
def test_subscription_comes_on_a_shortest_path(court: Court, hops: int):
    found = violation(lambda: court.laws.stored(broadcast(court.a0), court.c0, hops, 5))
    assert found.law == "path bounds"
    assert "the distance is 2" in found.detail


def test_flooded_subscription_may_come_on_any_path_without_a_loop():
    court = Court(Algorithm.BID)
    court.laws.stored(broadcast(court.a0), court.c0, 8, 5)
    found = violation(lambda: court.laws.stored(broadcast(court.a0), court.c0, 9, 5))
    assert found.law == "path bounds"


def test_subscription_that_settled_is_stored_everywhere(court: Court):
    begun = broadcast(court.a0)
    begun.stored = 0b111111111
    court.laws.settled(begun)
    begun.stored = 0b111110111
    found = violation(lambda: court.laws.settled(begun))
    assert (found.law, found.broker) == ("nothing lost", "b,0")


def reached(audience: Audience, *visits: tuple[int, Station]) -> Audience:
    for time, (row, station) in enumerate(visits):
        audience.reach(row, station.index, 1000 + time, 1)
    return audience


def test_batch_that_reached_all_who_want_it_is_lawful(court: Court):
    audience = court.audience(1, 2)
    court.laws.delivered(reached(audience, (1, court.c0), (0, court.a1), (0, court.c0)))


def test_delivery_must_not_be_made_twice(court: Court):
    visits = (0, court.a1), (0, court.c0), (0, court.a1)
    found = violation(lambda: court.laws.delivered(reached(court.audience(1), *visits)))
    assert (found.law, found.broker, found.time_ns) == ("no duplicate", "a,1", 1002)


def test_delivery_must_not_be_missed(court: Court):
    audience = reached(court.audience(1, 2), (0, court.a1), (1, court.c0))
    found = violation(lambda: court.laws.delivered(audience))
    assert (found.law, found.broker, found.notification) == ("nothing lost", "c,0", ("p", 0))
    assert found.time_ns == 99


def test_delivery_may_be_missed_where_a_loss_excuses_it(court: Court):
    audience = reached(court.audience(1), (0, court.a1))
    audience.flights[0].excused = court.c0.bit
    court.laws.delivered(audience)
    audience.flights[0].excused = court.b0.bit
    assert violation(lambda: court.laws.delivered(audience)).law == "nothing lost"


def test_delivery_where_nobody_wants_it_is_caught(court: Court):
    audience = reached(court.audience(2), (0, court.c0), (0, court.b0))
    found = violation(lambda: court.laws.delivered(audience))
    assert (found.law, found.broker, found.time_ns) == ("only matches", "b,0", 1001)


@pytest.mark.parametrize(
    ("found", "law"),
    [([1, 1], "no duplicate"), ([0, 1], "only matches"), ([], "nothing lost")],
)
def test_real_broker_delivers_to_exactly_those_who_want_it(
    court: Court, found: list[int], law: str
):
    flight = court.flight()
    court.laws.matched(flight, court.c0, [1], 5)
    assert violation(lambda: court.laws.matched(flight, court.c0, found, 6)).law == law


def test_index_that_agrees_with_the_filters_is_lawful(court: Court):
    court.laws.ask_filters(court.audience(0, 1, 2))


def test_index_that_misses_a_match_is_caught(court: Court):
    audience = court.audience(1, 2)
    audience.places, audience.subscriptions = audience.places[1:], audience.subscriptions[1:]
    found = violation(lambda: court.laws.ask_filters(audience))
    assert (found.law, found.broker) == ("nothing lost", "a,1")
    assert "the filter of one and the matching index disagree" in found.detail


def test_index_that_finds_too_much_is_caught(court: Court):
    audience = court.audience(1)
    audience.attributes = [{"x": 0}]
    found = violation(lambda: court.laws.ask_filters(audience))
    assert (found.law, found.broker) == ("only matches", "a,1")


def test_filters_are_asked_about_some_pairs_of_a_large_batch(
    court: Court, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(laws_module, "ORACLE_PAIRS", 10)
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(court.laws, "_ask", lambda _, row, number: asked.append((row, number)))
    court.laws.ask_filters(court.audience(*[1, 0] * 50))
    assert 20 <= len(asked) <= 25
    assert len({row for row, _ in asked}) >= 10
    assert {number for _, number in asked} == {0, 1}


def test_copies_that_left_queues_were_taken_in(court: Court):
    to_b0 = court.network.output(court.a0.broker, court.b0.broker)
    to_c0 = court.network.output(court.b0.broker, court.c0.broker)
    to_b0.messages, to_b0.dropped, to_b0.cut = 3, 1, 1
    to_c0.messages = 1
    court.laws.sent_by_client(court.a0)
    for hops, station in enumerate((court.a0, court.b0, court.c0)):
        copy = Copy(court.flight(), hops, 0, Reason.MATCH)
        court.laws.served(station, copy, 5)
    court.laws.conserved(9)
    to_c0.messages += 1
    found = violation(lambda: court.laws.conserved(9))
    assert (found.law, found.time_ns, found.broker) == ("conservation", 9, "c,0")
    assert found.detail == "2 messages were sent here, 1 were taken in"


def test_copy_that_vanished_is_not_made_up_for_by_one_from_nowhere(court: Court):
    to_b0 = court.network.output(court.a0.broker, court.b0.broker)
    to_b0.messages = 1
    court.laws.served(court.c0, Copy(court.flight(), 1, 0, Reason.MATCH), 5)
    assert violation(lambda: court.laws.conserved(9)).law == "conservation"


def test_run_does_not_end_with_a_notification_under_way(court: Court):
    flight = court.flight()
    flight.outstanding = 2
    court.laws.all_arrived([], 9)
    found = violation(lambda: court.laws.all_arrived([flight], 9))
    assert (found.law, found.detail) == ("conservation", "2 copies never arrived")


def test_messages_about_subscriptions_are_conserved_too(court: Court):
    court.laws.sent_by_client(court.a0)
    court.laws.served(court.a0, Copy(broadcast(court.a0), 0, 0, Reason.SUBSCRIPTION), 5)
    court.laws.conserved(9)
    court.laws.served(court.a0, Copy(None, 1, 0, Reason.SYNC), 6)
    assert violation(lambda: court.laws.conserved(9)).law == "conservation"


def test_run_does_not_end_with_messages_on_a_queue(court: Court):
    copy = Copy(court.flight(), 1, 0, Reason.MATCH)
    court.network.outputs[0].waiting.append(Waiting(copy, 0, 0))
    assert "1 still queued" in violation(lambda: court.laws.conserved(9)).detail


def test_link_status_is_what_was_counted(court: Court):
    court.network.track_queues(10, 50)
    output = court.network.outputs[0]
    output.tracked_status.queue_length = 3
    output.tracked_status.finish_window(2, 1)
    court.laws.link_status(output, (3, 2, 1), 5)
    for wrong in ((4, 2, 1), (3, 1, 1), (3, 2, 2)):
        found = violation(lambda w=wrong: court.laws.link_status(output, w, 5))
        assert (found.law, found.broker, found.time_ns) == ("link status", "a,0", 5)
        assert f"towards B(b, 0): (3, 2, 1) != {wrong}" in found.detail


def test_violation_says_law_seed_time_broker_and_notification(court: Court):
    flight = court.flight()
    copy = Copy(flight, 9, 0, Reason.MATCH)
    found = violation(lambda: court.laws.served_notification(court.b0, copy, 1_500_000_000))
    assert str(found) == (
        "law violated: path bounds: a path of 9 links (notification 0 of p), at broker b,0, "
        "1.500000000 s of virtual time, seed 42"
    )
