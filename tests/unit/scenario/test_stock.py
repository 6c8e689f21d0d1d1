from octopis.benchmarks.matching import BruteForce
from octopis.core.filters.tree import to_conjunctions
from octopis.core.matching import LinearIndex
from octopis.scenario.stock import StockWorkload


def test_same_seed_gives_the_same_workload():
    one, other = StockWorkload(7), StockWorkload(7)
    assert one.filters(20) == other.filters(20)
    assert one.notifications(20) == other.notifications(20)
    assert StockWorkload(8).filters(20) != one.filters(20)


def test_notifications_have_ten_attributes():
    assert {len(quote) for quote in StockWorkload(1).notifications(100)} == {10}


def test_filters_have_two_to_four_terms_and_match_about_two_percent():
    workload = StockWorkload(3)
    filters = workload.filters(150)
    assert {len(terms) for wanted in filters for terms in to_conjunctions(wanted.tree)} == {2, 3, 4}
    quotes = workload.notifications(1_000)
    matched = sum(wanted.matches(quote) for wanted in filters for quote in quotes)
    assert 0.015 < matched / (len(filters) * len(quotes)) < 0.025


def test_brute_force_agrees_with_the_oracle():
    workload = StockWorkload(5)
    filters = workload.filters(200)
    oracle: LinearIndex[int, int] = LinearIndex()
    oracle.add_many((number, wanted, 0) for number, wanted in enumerate(filters))
    quotes = workload.notifications(50)
    found = [numbers.tolist() for numbers in BruteForce(filters, workload).matches(quotes)]
    assert found == oracle.matches(quotes)
