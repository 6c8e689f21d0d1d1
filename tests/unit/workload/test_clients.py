import numpy as np

from octopis.routing import Algorithm
from octopis.workload.clients import HIGH_RATE_PUBLISHER, Clients, attribute_types
from octopis.workload.high_rate import FEED
from octopis.workload.plan import Plan
from octopis.workload.scenario import RoutingOptions


def clients(**options: object) -> Clients:
    return Clients(Plan(routing=RoutingOptions(Algorithm.SNR), subscribers=40, **options))


def test_order_of_asking_changes_nothing():
    one, other = clients(high_rate_notifications=5), clients(high_rate_notifications=5)
    texts = ["open > 1"] * 40
    first = one.publishers(), one.subscriptions(texts)
    second = other.subscriptions(texts), other.publishers()
    assert first == second[::-1]
    assert one.starts.tolist() == other.starts.tolist()


def test_first_subscribers_want_the_high_rate_publisher_and_the_others_keep_their_filters():
    texts = [f"open > {number}" for number in range(40)]
    wanted = clients(high_rate_notifications=5).subscriptions(texts).column("filter").to_pylist()
    assert wanted[:3] == ["feed = 'hrp'"] * 3
    assert wanted[3:] == texts[3:]
    assert texts[0] == "open > 0"


def test_high_rate_publisher_is_marked():
    rows = clients(publishers=2, high_rate_notifications=5).publishers().to_pylist()
    marked = [(row["publisher"], row["high_rate"]) for row in rows]
    assert marked == [("p0000", False), ("p0001", False), (HIGH_RATE_PUBLISHER, True)]


def test_times_are_steps_of_the_rates():
    found = clients(per_minute=120, high_rate_notifications=4, high_rate_per_minute=600)
    assert found.step_ns == 500_000_000
    assert np.diff(found.high_rate_times()).tolist() == [100_000_000] * 3


def test_attributes_of_the_feed_are_there_only_with_a_high_rate_publisher():
    routing = RoutingOptions(Algorithm.SNR)
    plain = attribute_types(Plan(routing=routing))
    burst = attribute_types(Plan(routing=routing, high_rate_notifications=1))
    assert len(plain) == 10
    assert {field.name for field in burst} == {field.name for field in plain} | set(FEED)
