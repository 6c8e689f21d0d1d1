from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import LinkStatusTable
from octopis.simulator.queue_status import NEVER, QueueStatus
from support.overlays import A0

WINDOW_NS = 10


class Event(NamedTuple):
    what: str
    after_ns: int
    slot_after_ns: int


EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from(("enter", "enter", "drop", "look", "reset")),
        st.sampled_from((0, 1, 3, 9, 10, 11, 25, 100)),
        st.sampled_from((0, 1, 5, 10, 40)),
    ),
    max_size=60,
)


class Driven:
    """A Link Status Table that is told of everything at once, window by window."""

    def __init__(self, threshold: float) -> None:
        self.table = LinkStatusTable([A0], threshold)
        self.now = 0

    def until(self, now: int) -> None:
        for _ in range(now // WINDOW_NS - self.now // WINDOW_NS):
            self.table.window_elapsed()
        self.now = now

    def left(self, when: int) -> None:
        self.until(when)
        self.table.left(A0)


@given(EVENTS, st.floats(0.1, 100))
@settings(max_examples=300)
def test_counts_are_those_of_a_link_status_table_that_is_told_at_once(
    events: list[Event], threshold: float
):
    status, driven, now = QueueStatus(threshold, WINDOW_NS), Driven(threshold), 0
    for what, after_ns, slot_after_ns in events:
        now += after_ns
        if status.leaves_at <= now:
            driven.left(status.leaves_at)
        driven.until(now)
        status.settle(now)
        if what == "enter":
            status.entered(now)
            driven.table.entered(A0)
        elif what == "drop" and status.queue_length > (status.leaves_at != NEVER):
            status.dropped(now)
            driven.table.left(A0)
        elif what == "reset":
            status.reset()
            driven.table.reset(A0)
        if status.queue_length and status.leaves_at == NEVER:
            status.leaves_at = now + slot_after_ns  # the next message gets its slot
        told, kept = driven.table[A0], status
        assert kept.queue_length == told.queue_length
        assert (kept.q_in, kept.q_out) == (told.q_in, told.q_out)
        assert (kept.entering, kept.leaving) == (told.entering, told.leaving)
        assert kept.longest_uncongested() == driven.table.longest_uncongested(A0)


def test_departure_is_counted_in_its_window_although_nobody_looked():
    status = QueueStatus(10, WINDOW_NS)
    status.entered(3)
    status.leaves_at = 8
    status.settle(19)
    assert (status.queue_length, status.q_in, status.q_out) == (0, 1, 1)
    assert (status.entering, status.leaving) == (0, 0)


def test_departure_on_the_border_belongs_to_the_window_that_begins():
    status = QueueStatus(10, WINDOW_NS)
    status.entered(9)
    status.leaves_at = 10
    status.settle(10)
    assert (status.q_in, status.q_out, status.leaving) == (1, 0, 1)


def test_counts_are_forgotten_after_a_window_without_messages():
    status = QueueStatus(10, WINDOW_NS)
    status.entered(3)
    status.settle(25)
    assert (status.queue_length, status.q_in, status.q_out) == (1, 0, 0)


@pytest.mark.parametrize(("q_in", "q_out", "longest"), [(0, 0, 10), (4, 0, 2), (0, 4, 50)])
def test_queue_that_grew_may_be_less_long(q_in: int, q_out: int, longest: int):
    status = QueueStatus(10, WINDOW_NS)
    status.q_in, status.q_out = q_in, q_out
    assert status.longest_uncongested() == longest
