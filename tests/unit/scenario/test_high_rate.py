import numpy as np
import pyarrow as pa
import pytest

from octopis.core.filters import parse_filter
from octopis.scenario.high_rate import FEED, ticks, wants_feed
from octopis.scenario.stock import StockWorkload


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
