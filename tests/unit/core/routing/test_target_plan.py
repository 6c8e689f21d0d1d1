"""The rule of target routing by examples, at B(b, 0) of regions a - b - c and clusters 0, 1, 2."""

import pytest

from octopis.core.model import BrokerId
from octopis.core.routing import LinkStatus, Reason
from octopis.core.routing.algorithms.tnr import Crossroads, is_open, onward, plan
from octopis.core.topology import LinkKind
from support.overlays import A0, A1, A2, B0, B1, B2, C0, C1, C2, CHAIN

OVERLOADED = 11
"""On a queue of which 10 is the longest that is not congested."""

USELESS = 3
"""In `tried`, bits from here on tell of which clusters the way was down."""


class Here:
    """B(b, 0) and its links."""

    def __init__(self) -> None:
        self.links = {
            each: LinkStatus(each, is_icol=CHAIN.link_kind(B0, each) is LinkKind.ICOL)
            for each in CHAIN.neighbours(B0)
        }
        self.crossroads = Crossroads(B0, CHAIN, self.links)

    def jam(self, *links: BrokerId, length: int = OVERLOADED) -> None:
        for each in links:
            self.links[each].queue_length = length

    def cut(self, *links: BrokerId) -> None:
        for each in links:
            self.links[each].is_up = False

    def plan(self, *targets: BrokerId, tried: int = 0) -> dict[BrokerId, tuple]:
        """Return for each link the targets, what was tried, and the reason of its copy."""
        self.found = plan(self.crossroads, bits(*targets), tried, 0)
        return {
            link.link: (set(CHAIN.brokers_in(part)), carried, reason)
            for link, part, carried, reason in self.found.copies
        }


def bits(*brokers: BrokerId) -> int:
    return sum(map(CHAIN.bit, brokers))


@pytest.fixture
def here() -> Here:
    return Here()


# Its own way (step 3)


def test_branch_goes_over_its_acol(here: Here):
    assert here.plan(A0, A1) == {A0: ({A0, A1}, 0, Reason.TARGET)}


def test_target_of_the_region_is_crossed_to_late(here: Here):
    assert here.plan(B1, B2) == {
        B1: ({B1}, 0, Reason.LATE),
        B2: ({B2}, 0, Reason.LATE),
    }


def test_branch_that_wants_one_other_cluster_crosses_early(here: Here):
    assert here.plan(A1, C1, B1, C0) == {
        B1: ({A1, B1}, 0, Reason.EARLY),
        C0: ({C0, C1}, 0, Reason.TARGET),
    }


def test_branch_of_two_other_clusters_does_not_cross_here(here: Here):
    assert here.plan(A1, A2) == {A0: ({A1, A2}, 0, Reason.TARGET)}


def test_nothing_crosses_early_where_it_was_sent_around(here: Here):
    assert here.plan(A1, tried=0b010) == {A0: ({A1}, 0, Reason.TARGET)}


def test_tried_stays_over_an_icol_and_is_empty_over_an_acol(here: Here):
    assert here.plan(B1, C0, tried=0b100) == {
        C0: ({C0}, 0, Reason.TARGET),
        B1: ({B1}, 0b100, Reason.LATE),
    }


def test_nothing_is_left_to_do_without_targets(here: Here):
    assert here.plan() == {}
    assert here.found == ([], 0)


def test_single_copy_is_that_of_the_plan(here: Here):
    for link, part in here.crossroads.split(bits(A1, B1, C0), 0)[0].items():
        assert (
            onward(here.crossroads, link, part, 0)
            in plan(here.crossroads, bits(A1, B1, C0), 0, 0).copies
        )


# What has no open way (step 4)


def test_early_crossing_that_is_closed_is_made_late_over_the_acol(here: Here):
    here.jam(B1)
    assert here.plan(A1) == {A0: ({A1}, 0, Reason.TARGET)}
    here.cut(B1)
    assert here.plan(A1) == {A0: ({A1}, 0, Reason.TARGET)}


def test_overloaded_acol_is_gone_around_over_the_lowest_of_equal_icols(here: Here):
    here.jam(A0)
    assert here.plan(A0) == {B1: ({A0}, 0b001, Reason.AROUND_OVERLOAD)}


def test_way_around_has_the_shortest_queue(here: Here):
    here.jam(A0)
    here.jam(B1, length=2)
    assert here.plan(A0) == {B2: ({A0}, 0b001, Reason.AROUND_OVERLOAD)}


def test_way_around_is_first_of_all_one_that_gets_a_copy_anyway(here: Here):
    here.jam(A0)
    here.jam(B2, length=5)
    assert here.plan(A0, B2) == {B2: ({A0, B2}, 0b001, Reason.AROUND_OVERLOAD)}


def test_all_that_is_stuck_goes_around_together(here: Here):
    here.jam(A0, C0, B2)
    assert here.plan(A0, C0, C1, B2) == {B1: ({A0, C0, C1, B2}, 0b001, Reason.AROUND_OVERLOAD)}


def test_way_around_leads_to_no_tried_cluster(here: Here):
    here.jam(A0)
    assert here.plan(A0, tried=0b010) == {B2: ({A0}, 0b011, Reason.AROUND_OVERLOAD)}


def test_cut_link_is_gone_around_and_told_of(here: Here):
    here.cut(A0)
    assert here.plan(A0) == {B1: ({A0}, 0b001 | 0b001 << USELESS, Reason.AROUND_FAULT)}


def test_cluster_is_of_use_to_a_copy_of_which_a_part_only_has_to_wait(here: Here):
    here.cut(A0)
    here.jam(C0)
    assert here.plan(A0, C0) == {B1: ({A0, C0}, 0b001, Reason.AROUND_FAULT)}


def test_what_has_nowhere_to_go_around_waits_on_its_own_way(here: Here):
    here.jam(A0, B1, B2)
    assert here.plan(A0, C0) == {
        C0: ({C0}, 0, Reason.TARGET),
        A0: ({A0}, 0, Reason.WAITS),
    }
    assert here.plan(B1, tried=0b100) == {B1: ({B1}, 0b100, Reason.WAITS)}


def test_branch_waits_on_its_acol_rather_than_on_an_early_crossing(here: Here):
    here.jam(A0, B1, B2)
    assert here.plan(A1) == {A0: ({A1}, 0, Reason.WAITS)}


def test_branch_waits_on_its_early_crossing_where_its_acol_is_down(here: Here):
    here.cut(A0)
    here.jam(B1, B2)
    assert here.plan(A1) == {B1: ({A1}, 0, Reason.WAITS)}


def test_what_cannot_wait_goes_around_over_an_overloaded_icol(here: Here):
    here.cut(A0)
    here.jam(B1, B2)
    assert here.plan(A0, C0) == {
        C0: ({C0}, 0, Reason.TARGET),
        B1: ({A0}, 0b001 | 0b001 << USELESS, Reason.AROUND_FAULT),
    }


def test_what_waits_and_what_goes_around_share_a_copy(here: Here):
    here.cut(A0)
    here.jam(B1, B2)
    assert here.plan(A0, B1) == {B1: ({A0, B1}, 0b001 | 0b001 << USELESS, Reason.AROUND_FAULT)}


def test_where_all_is_tried_it_goes_back_to_where_it_was_overload_alone(here: Here):
    here.cut(A0)
    tried = 0b110 | 0b010 << USELESS  # in cluster 1 the way was down, in 2 it was overloaded
    assert here.plan(A0, tried=tried) == {B2: ({A0}, 0b111 | 0b011 << USELESS, Reason.AROUND_FAULT)}


def test_where_nothing_is_of_use_it_cannot_go_on(here: Here):
    here.cut(A0)
    assert here.plan(A0, C0, tried=0b110 | 0b110 << USELESS) == {C0: ({C0}, 0, Reason.TARGET)}
    assert here.found.unreachable == bits(A0)


def test_broker_without_links_reaches_nobody(here: Here):
    here.cut(*here.links)
    assert here.plan(A1, B2, C2) == {}
    assert here.found.unreachable == bits(A1, B2, C2)


def test_link_is_open_up_to_the_longest_queue_that_is_not_congested(here: Here):
    link = here.links[A0]
    here.jam(A0, length=10)
    assert is_open(link)
    here.jam(A0)
    assert not is_open(link)
    here.jam(A0, length=0)
    here.cut(A0)
    assert not is_open(link)


def test_many_sets_of_targets_are_not_kept_for_ever(here: Here, monkeypatch):
    monkeypatch.setattr("octopis.core.routing.algorithms.tnr._SETS_MAX", 2)
    for targets in ([B1], [B2], [B1, B2], [B1], [C1, B1]):
        expected = {each for each in targets if each.region == "b"}
        found = here.plan(*targets)
        assert {each for part, _, _ in found.values() for each in part} == set(targets)
        assert expected <= set(found)
