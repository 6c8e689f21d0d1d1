import pytest

from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex, LinearIndex
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing import Entry, RoutingTable, Subscription
from octopis.core.routing.table import LOCAL
from support.overlays import A0, B0, C0

BATCH = [{"x": 1}, {"x": 2}]


def entry(identity: str, last_hop: BrokerId | None, wanted: str = "x = 1", epoch: int = 0) -> Entry:
    subscription = Subscription(identity, parse_filter(wanted), epoch)
    return Entry(subscription, last_hop, ClusterBitVector(0b1), last_hop or B0)


@pytest.fixture(params=[LinearIndex, BitsetIndex])
def table(request: pytest.FixtureRequest) -> RoutingTable:
    table = RoutingTable(lambda entry: entry.last_hop, request.param)
    for each in (entry("s", LOCAL), entry("t", A0), entry("u", A0, "x > 0"), entry("v", C0)):
        table.put(each)
    return table


def test_local_and_other_entries_are_matched_apart(table: RoutingTable):
    assert table.local_matches(BATCH) == [["s"], []]
    assert table.destinations(BATCH) == [(A0, C0), (A0,)]


@pytest.mark.parametrize("index", [LinearIndex, BitsetIndex])
@pytest.mark.parametrize("is_asked_before", [True, False])
def test_table_with_its_own_place_finds_local_entries_among_the_others(index, is_asked_before):
    table = RoutingTable(lambda entry: entry.host, index, [C0, B0, A0], B0)
    if is_asked_before:  # from then on local entries are also kept apart
        assert table.local_matches(BATCH) == [[], []]
    for each in (entry("s", LOCAL), entry("t", A0, "x > 0"), entry("v", C0), entry("w", LOCAL)):
        table.put(each)
    table.put(entry("w", A0, "x = 2"))
    assert table.reached_and_local(BATCH) == ([0b111, 0b100], [["s"], []])
    assert table.local_matches(BATCH) == [["s"], []]
    assert table.hosts(BATCH) == [{A0, B0, C0}, {A0}]
    table.tidy()
    table.remove("s")
    assert table.reached_and_local(BATCH) == ([0b101, 0b100], [[], []])
    assert table.local_matches(BATCH) == [[], []]


@pytest.mark.parametrize("index", [LinearIndex, BitsetIndex])
def test_table_looks_only_for_what_it_has(index):
    table = RoutingTable(lambda entry: entry.host, index, [C0, B0, A0], B0)
    assert table.reached_and_local(BATCH) == ([0, 0], [[], []])
    table.put(entry("s", LOCAL))
    assert table.reached_and_local(BATCH) == ([0, 0], [["s"], []])  # nobody asks for the own bit
    table.put(entry("s", A0, "x > 0", 1))
    assert table.reached_and_local(BATCH) == ([0b100, 0b100], [[], []])
    table.put(entry("s", LOCAL, "x = 2", 2))
    table.put(entry("t", C0))
    assert table.reached_and_local(BATCH) == ([0b001, 0b010], [[], ["s"]])
    table.remove("t")
    assert table.reached_and_local(BATCH) == ([0, 0], [[], ["s"]])
    table.remove("s")
    assert table.reached_and_local(BATCH) == ([0, 0], [[], []])


def test_each_destination_is_named_once(table: RoutingTable):
    assert table.destinations([{"x": 1}])[0].count(A0) == 1


def test_newer_entry_takes_the_place_of_the_old_one(table: RoutingTable):
    table.put(entry("v", A0))
    assert len(table) == 4
    assert table.get("v").last_hop == A0
    assert table.destinations(BATCH) == [(A0,), (A0,)]


def test_entry_can_become_local_and_back(table: RoutingTable):
    table.put(entry("v", LOCAL))
    assert sorted(table.local_matches(BATCH)[0]) == ["s", "v"]
    assert table.destinations(BATCH)[0] == (A0,)
    table.put(entry("v", C0))
    assert table.local_matches(BATCH) == [["s"], []]
    assert table.destinations(BATCH)[0] == (A0, C0)


def test_change_that_matching_does_not_see_is_stored_all_the_same(table: RoutingTable):
    newer = entry("v", C0, epoch=1)
    table.put(newer)
    assert table.get("v") is newer
    assert table.destinations(BATCH)[0] == (A0, C0)


def test_changed_filter_is_matched_from_then_on(table: RoutingTable):
    table.put(entry("v", C0, "x = 2"))
    assert table.destinations(BATCH) == [(A0,), (A0, C0)]


def test_removed_entry_is_returned_and_matches_no_more(table: RoutingTable):
    assert table.remove("v") == entry("v", C0)
    assert table.get("v") is None
    assert table.destinations(BATCH)[0] == (A0,)
    assert [each.subscription.id for each in table] == ["s", "t", "u"]


def test_removing_what_is_not_there_returns_nothing(table: RoutingTable):
    assert table.remove("w") is None
    assert len(table) == 4
