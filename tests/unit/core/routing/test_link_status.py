import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.core.model import BrokerId
from octopis.core.routing import CONGESTION_THRESHOLD, WINDOW_MS, LinkStatus
from octopis.core.routing.link_status import NEVER, least_loaded
from support.overlays import A0

WINDOW_NS = WINDOW_MS * 1_000_000


def status(tau: float = 10.0, q_in: int = 0, q_out: int = 0, length: int = 0) -> LinkStatus:
    made = LinkStatus(A0, is_icol=True, congestion_threshold=tau)
    made.finish_window(q_in, q_out)
    made.queue_length = length
    return made


def counts(found: LinkStatus) -> tuple[int, int, int]:
    return found.queue_length, found.q_in, found.q_out


def test_defaults_are_those_of_the_paper():
    assert (CONGESTION_THRESHOLD, WINDOW_MS) == (10.0, 50)


@pytest.mark.parametrize(
    ("queue_length", "q_in", "q_out", "overloaded"),
    [
        (0, 1_000, 0, False),  # an empty queue is never congested
        (10, 0, 0, False),  # 10 * 1/1 = 10, exactly the threshold
        (11, 0, 0, True),  # 11 * 1/1
        (5, 9, 4, False),  # 5 * 10/5 = 10
        (6, 9, 4, True),  # 6 * 10/5 = 12
        (30, 0, 2, False),  # 30 * 1/3 = 10
        (31, 0, 2, True),  # 31 * 1/3 = 10.33
        (1, 9, 0, False),  # 1 * 10/1 = 10
        (1, 10, 0, True),  # 1 * 11/1
        (1_000, 0, 100, False),  # 1000 * 1/101 = 9.9: long, but it shrinks fast
        (49, 48, 239, True),  # 49 * 49/240 = 10.004
        (3, 9, 2, False),  # 3 * 10/3 = 10, though 10/3 has no exact float
    ],
)
def test_equation_3_by_hand(queue_length: int, q_in: int, q_out: int, overloaded: bool):
    assert status(10.0, q_in, q_out, queue_length).is_overloaded is overloaded


@pytest.mark.parametrize(
    ("q_in", "q_out", "element"), [(0, 0, 1.0), (3, 1, 2.0), (1, 3, 0.5), (7, 7, 1.0)]
)
def test_congestion_element_says_whether_the_queue_grew(q_in: int, q_out: int, element: float):
    assert status(10.0, q_in, q_out).congestion_element == element


@given(
    st.floats(0.01, 1e6) | st.integers(1, 1000),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
)
def test_longest_uncongested_queue_is_where_equation_3_turns(tau: float, q_in: int, q_out: int):
    found = status(tau, q_in, q_out)
    longest = found.longest_uncongested
    assert longest * (1 + q_in) <= tau * (1 + q_out)
    assert (longest + 1) * (1 + q_in) > tau * (1 + q_out)
    found.queue_length = int(longest)
    assert not found.is_overloaded
    found.queue_length += 1
    assert found.is_overloaded


def test_without_a_threshold_nothing_is_congested():
    assert not status(float("inf"), length=10**9).is_overloaded


def test_link_that_is_down_is_not_overloaded():
    found = status(length=11)
    assert found.is_overloaded
    found.is_up = False
    assert not found.is_overloaded


def test_queue_length_is_read_now_and_counts_only_from_the_last_finished_window():
    found = status()
    found.entered(0, 3)
    found.left(WINDOW_NS - 1)
    assert counts(found) == (2, 0, 0)
    found.roll(WINDOW_NS)
    assert counts(found) == (2, 3, 1)
    found.entered(WINDOW_NS, 1)  # in the window that runs
    assert counts(found) == (3, 3, 1)
    found.roll(2 * WINDOW_NS)
    assert counts(found) == (3, 1, 0)


@pytest.mark.parametrize("windows", [2, 3, 1_000_000])
def test_after_a_window_in_which_nothing_happened_both_counts_are_zero(windows: int):
    found = status()
    found.entered(0, 3)
    found.roll(windows * WINDOW_NS)
    assert counts(found) == (3, 0, 0)


def test_what_happens_belongs_to_the_window_of_its_time_whenever_somebody_looks():
    found = status()
    found.entered(0, 5)
    found.dropped(WINDOW_NS + 1, 2)  # the first look at the new window is a change itself
    assert counts(found) == (3, 5, 0)
    found.left(2 * WINDOW_NS, 3)
    assert counts(found) == (0, 0, 0)
    found.roll(3 * WINDOW_NS)
    assert counts(found) == (0, 0, 3)


def test_departure_that_is_known_in_advance_is_counted_when_its_time_has_come():
    found = status()
    found.entered(0, 2)
    found.leaves_at = WINDOW_NS + 5
    found.roll(WINDOW_NS + 4)
    assert counts(found) == (2, 2, 0)
    found.roll(3 * WINDOW_NS)  # it left two windows ago
    assert counts(found) == (1, 0, 0)
    assert found.leaves_at == NEVER


def test_departure_that_is_known_in_advance_counts_in_its_own_window():
    found = status()
    found.entered(0, 2)
    found.leaves_at = WINDOW_NS + 5
    found.entered(2 * WINDOW_NS)
    assert counts(found) == (2, 0, 1)


def test_link_that_goes_down_forgets_queue_and_windows():
    found = status(0.0)
    found.entered(0, 5)
    found.roll(WINDOW_NS)
    found.leaves_at = 2 * WINDOW_NS
    found.go_down()
    found.is_up = True
    assert not found.is_overloaded
    assert counts(found) == (0, 0, 0)
    found.roll(3 * WINDOW_NS)  # nothing leaves any more
    assert counts(found) == (0, 0, 0)


def test_more_cannot_leave_than_entered():
    found = status()
    found.entered(0)
    with pytest.raises(AssertionError, match="more messages left"):
        found.left(0, 2)


def test_what_a_full_queue_drops_is_gone_but_did_not_go_over_the_link():
    found = status()
    found.entered(0, 5)
    found.left(0, 1)
    found.dropped(0, 3)
    found.roll(WINDOW_NS)
    assert counts(found) == (1, 5, 1)


def test_no_more_can_be_dropped_than_is_there():
    found = status()
    found.entered(0)
    with pytest.raises(AssertionError, match=r"more towards B\(a, 0\) was dropped"):
        found.dropped(0, 2)


def test_least_loaded_is_the_shortest_and_then_the_lowest():
    def link(region: str, cluster: int, length: int = 0) -> LinkStatus:
        made = LinkStatus(BrokerId(region, cluster), is_icol=False)
        made.queue_length = length
        return made

    assert least_loaded([link("a", 0, 2), link("b", 1, 1)]).link == ("b", 1)
    assert least_loaded([link("a", 2), link("a", 1), link("a", 3)]).link == ("a", 1)
    assert least_loaded([link("c", 0), link("b", 0)]).link == ("b", 0)
