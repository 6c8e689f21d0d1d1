import gc
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.core.routing import Reason
from octopis.scenario.tables import Subscriber
from octopis.simulator.audience import Audience, Broadcast, Copy, Flight, Matcher
from octopis.simulator.network import Network
from support.overlays import CHAIN
from support.scenarios import FILTERS, random_notification

BROKERS = len(CHAIN.brokers)


def matcher(*wishes: tuple[str, int]) -> Matcher:
    """Return a matcher for subscriptions, each with the index of its host."""
    subscribers = [
        Subscriber(f"s{number}", f"c{number}", CHAIN.brokers[host], parse_filter(text), 0)
        for number, (text, host) in enumerate(wishes)
    ]
    return Matcher(subscribers, [host for _, host in wishes], BROKERS)


@pytest.fixture
def audience() -> Audience:
    """Notifications 0 and 1 of which two, one and no broker want the first, second and third."""
    wishes = matcher(("x = 1", 4), ("x >= 1", 2), ("x = 1", 4), ("x = 9", 0))
    return wishes.audience([{"x": 1}, {"x": 2}, {"x": 0}])


def test_targets_are_the_brokers_with_a_match(audience: Audience):
    assert audience.targets() == [1 << 4 | 1 << 2, 1 << 2, 0]


def test_every_match_is_known_by_broker_and_by_subscription(audience: Audience):
    assert audience.wanting(0, 4) == [0, 2]
    assert audience.wanting(0, 2) == audience.wanting(1, 2) == [1]
    assert audience.wanting(1, 4) == audience.wanting(2, 2) == []
    assert [audience.wants(0, number) for number in range(4)] == [True, True, True, False]
    assert not audience.wants(1, 0)


def test_places_with_several_matches_are_wanted_once(audience: Audience):
    assert audience.places.tolist() == [2, 4, 4, BROKERS + 2]
    assert audience.wanted_places().tolist() == [2, 4, BROKERS + 2]


def test_deliveries_are_told_in_the_order_of_time_whatever_the_order_of_work(audience: Audience):
    audience.reach(1, 2, now=30, hops=3)
    audience.reach(0, 4, now=20, hops=2)
    audience.reach(0, 2, now=20, hops=1)
    visits, subscriptions = audience.deliveries()
    assert list(audience.reached) == [2, 4, BROKERS + 2]
    assert list(audience.reached_ns) == [20, 20, 30]
    assert list(audience.reached_hops) == [1, 2, 3]
    assert visits.tolist() == [0, 1, 1, 2]
    assert subscriptions.tolist() == [1, 0, 2, 1]


def test_nothing_is_delivered_where_nobody_was_reached(audience: Audience):
    visits, subscriptions = audience.deliveries()
    assert len(visits) == len(subscriptions) == 0


def test_batches_are_numbered():
    made = matcher(("TRUE", 0))
    assert [made.audience([{"x": 1}]).number for _ in range(3)] == [1, 2, 3]


def test_without_subscribers_nobody_wants_anything():
    audience = matcher().audience([{"x": 1}, {"x": 2}])
    assert audience.targets() == [0, 0]
    assert len(audience.wanted_places()) == 0


def test_all_notifications_of_a_batch_are_under_way_at_first(audience: Audience):
    assert audience.under_way == 3


@given(st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_audience_is_what_the_filters_say(random: Random):
    filters = [random.choice(FILTERS) for _ in range(random.randint(0, 12))]
    hosts = [random.randrange(BROKERS) for _ in filters]
    subscribers = [
        Subscriber(f"s{number}", "c", CHAIN.brokers[host], wanted, 0)
        for number, (wanted, host) in enumerate(zip(filters, hosts, strict=True))
    ]
    batch = [random_notification(random, number).attributes for number in range(5)]
    audience = Matcher(subscribers, hosts, BROKERS).audience(batch)
    pairs = {
        (row, number)
        for row, attributes in enumerate(batch)
        for number, wanted in enumerate(filters)
        if wanted.matches(attributes)
    }
    everything = {(row, number) for row in range(5) for number in range(len(filters))}
    assert {pair for pair in everything if audience.wants(*pair)} == pairs
    targets = [set[int]() for _ in batch]
    for row, number in pairs:
        targets[row].add(hosts[number])
    assert audience.targets() == [sum(1 << host for host in each) for each in targets]
    for place in audience.wanted_places().tolist():
        row, broker = divmod(place, BROKERS)
        audience.reach(row, broker, random.randrange(10), 0)
    visits, subscriptions = audience.deliveries()
    rows = np.frombuffer(audience.reached, np.int64)[visits] // BROKERS
    delivered = list(zip(rows.tolist(), subscriptions.tolist(), strict=True))
    assert sorted(delivered) == sorted(pairs)


def test_collector_has_nothing_to_do_with_flights(audience: Audience):
    host = Network(CHAIN, 0, exact=False).by_broker[BrokerId("a", 0)]
    assert not gc.is_tracked(Flight(0, 0, host, 0, audience, 0, 0))


def broadcast() -> Broadcast:
    host = Network(CHAIN, 0, exact=False).stations[0]
    return Broadcast(number=3, host=host, subscribed_ns=5)


def test_broadcast_begins_as_the_one_message_of_its_client():
    begun = broadcast()
    assert (begun.outstanding, begun.copies, begun.stored) == (1, 0, 0)


def test_copies_carry_nothing_unless_told():
    copy = Copy(None, 1, 1000, Reason.SYNC)
    assert (copy.mask, copy.message) == (0, None)


def test_collector_has_nothing_to_do_with_copies():
    # A run makes millions of them, with the collector switched off.
    begun = broadcast()
    assert not gc.is_tracked(begun)
    assert not gc.is_tracked(Copy(begun, 1, 1000, Reason.SUBSCRIPTION))
