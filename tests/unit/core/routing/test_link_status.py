import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.core.routing import CONGESTION_THRESHOLD, WINDOW_MS, LinkStatusTable
from support.overlays import A0, C0


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
    table = LinkStatusTable([A0], congestion_threshold=10.0)
    status = table[A0]
    status.queue_length, status.q_in, status.q_out = queue_length, q_in, q_out
    assert table.is_overloaded(A0) is overloaded


@pytest.mark.parametrize(
    ("q_in", "q_out", "element"), [(0, 0, 1.0), (3, 1, 2.0), (1, 3, 0.5), (7, 7, 1.0)]
)
def test_congestion_element_says_whether_the_queue_grew(q_in: int, q_out: int, element: float):
    status = LinkStatusTable([A0], 10.0)[A0]
    status.q_in, status.q_out = q_in, q_out
    assert status.congestion_element == element


@given(
    st.floats(0.01, 1e6) | st.integers(1, 1000),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
)
def test_longest_uncongested_queue_is_where_equation_3_turns(tau: float, q_in: int, q_out: int):
    table = LinkStatusTable([A0], tau)
    table[A0].q_in, table[A0].q_out = q_in, q_out
    longest = table.longest_uncongested(A0)
    assert longest * (1 + q_in) <= tau * (1 + q_out)
    assert (longest + 1) * (1 + q_in) > tau * (1 + q_out)
    table[A0].queue_length = int(longest)
    assert not table.is_overloaded(A0)
    table[A0].queue_length += 1
    assert table.is_overloaded(A0)


def test_without_a_threshold_nothing_is_congested():
    table = LinkStatusTable([A0], float("inf"))
    table.entered(A0, 10**9)
    assert not table.is_overloaded(A0)


def test_queue_length_is_read_now_and_counts_only_from_the_last_finished_window():
    table = LinkStatusTable([A0], 10.0)
    table.entered(A0, 3)
    table.left(A0)
    status = table[A0]
    assert (status.queue_length, status.q_in, status.q_out) == (2, 0, 0)
    table.window_elapsed()
    assert (status.queue_length, status.q_in, status.q_out) == (2, 3, 1)
    table.window_elapsed()
    assert (status.queue_length, status.q_in, status.q_out) == (2, 0, 0)


def test_links_are_counted_apart():
    table = LinkStatusTable([A0, C0], 10.0)
    table.entered(A0, 11)
    assert table.is_overloaded(A0)
    assert not table.is_overloaded(C0)


def test_reset_forgets_queue_and_windows():
    table = LinkStatusTable([A0], 0.0)
    table.entered(A0, 5)
    table.window_elapsed()
    table.reset(A0)
    assert not table.is_overloaded(A0)
    assert table[A0].q_in == table[A0].queue_length == 0


def test_more_cannot_leave_than_entered():
    table = LinkStatusTable([A0], 10.0)
    table.entered(A0)
    with pytest.raises(AssertionError, match="more messages left"):
        table.left(A0, 2)


def test_what_a_full_queue_drops_is_gone_but_did_not_go_over_the_link():
    table = LinkStatusTable([A0], 10.0)
    table.entered(A0, 5)
    table.left(A0, 1)
    table.dropped(A0, 3)
    table.window_elapsed()
    assert (table[A0].queue_length, table[A0].q_in, table[A0].q_out) == (1, 5, 1)


def test_no_more_can_be_dropped_than_is_there():
    table = LinkStatusTable([A0], 10.0)
    table.entered(A0, 1)
    with pytest.raises(AssertionError, match="more messages of B\\(a, 0\\) were dropped"):
        table.dropped(A0, 2)
