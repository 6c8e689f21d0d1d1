import numpy as np
import pyarrow as pa
import pytest

from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.scenario.clients import (
    FEED,
    HIGH_RATE_PUBLISHER,
    Clients,
    attribute_types,
    ticks,
    wants_feed,
)
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.stock import StockWorkload


def clients(**options: object) -> Clients:
    return Clients(ScenarioPlan(routing=RoutingOptions(Algorithm.SNR), subscribers=40, **options))


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
    plain = attribute_types(ScenarioPlan(routing=routing))
    burst = attribute_types(ScenarioPlan(routing=routing, high_rate_notifications=1))
    assert len(plain) == 10
    assert {field.name for field in burst} == {field.name for field in plain} | set(FEED)


def test_several_high_rate_publishers_sit_in_clusters_of_their_own_away_from_their_subscribers():
    found = clients(high_rate_notifications=5, high_rate_publishers=3, publishers=2)

    rows = [row for row in found.publishers().to_pylist() if row["high_rate"]]
    places = {row["broker"] for row in rows}
    subscribed = found.subscriptions(["open > 1"] * 40).to_pylist()
    wanting = {row["broker"] for row in subscribed if row["filter"] == "feed = 'hrp'"}

    assert [row["publisher"] for row in rows] == ["hrp", "hrp2", "hrp3"]
    assert len({place.split(",")[1] for place in places}) == 3
    assert not places & wanting


def test_further_high_rate_publishers_leave_the_first_where_it_was():
    alone, among = (
        clients(high_rate_notifications=5, high_rate_publishers=count).publishers().to_pylist()
        for count in (1, 3)
    )
    assert [row for row in among if row["publisher"] not in {"hrp2", "hrp3"}] == alone


def test_subscriptions_are_as_far_apart_as_the_plan_says():
    rows = clients(subscribe_every_ms=2.5).subscriptions(["open > 1"] * 40).to_pylist()
    assert [row["subscribe_ns"] for row in rows[:3]] == [0, 2_500_000, 5_000_000]


def feed(count: int, seed: int = 1):
    return ticks(count, np.random.default_rng(seed))


def test_same_generator_gives_the_same_feed():
    assert feed(50, seed=1) == feed(50, seed=1)
    assert feed(50, seed=1) != feed(50, seed=2)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_feed_has_as_many_ticks_as_asked_for_numbered_in_order(count: int):
    assert [each["tick"] for each in feed(count)] == list(range(count))


def test_every_tick_has_the_ten_attributes_with_their_types():
    rows = feed(50)
    assert {tuple(row) for row in rows} == {tuple(FEED)}
    assert len(FEED) == 10
    assert pa.array(rows, pa.struct(list(FEED.items()))).to_pylist() == rows


def test_bid_stands_below_and_ask_above_the_last_price():
    assert all(each["bid"] < each["last"] < each["ask"] for each in feed(200))


def test_who_wants_the_feed_gets_all_of_it_and_no_quote():
    wanted = parse_filter(wants_feed())
    assert all(wanted.matches(tick) for tick in feed(50))
    assert not any(wanted.matches(quote) for quote in StockWorkload(1).notifications(200))


def test_feed_shares_no_attribute_with_quotes():
    assert FEED.keys().isdisjoint(StockWorkload(1).names)


def test_subscriptions_to_quotes_never_match_the_feed():
    filters, rows = StockWorkload(1).filters(300), feed(30)
    assert not any(wanted.matches(tick) for wanted in filters for tick in rows)
