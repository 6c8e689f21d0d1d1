"""A link status is the same whether it is told of departures at once or knows them before."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import LinkStatus
from octopis.core.routing.link_status import NEVER
from support.overlays import A0

WINDOW_NS = 10


class Event(NamedTuple):
    what: str
    after_ns: int
    leaves_after_ns: int


EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from(("enter", "enter", "drop", "look", "down")),
        st.sampled_from((0, 1, 3, 9, 10, 11, 25, 100)),
        st.sampled_from((0, 1, 5, 10, 40)),
    ),
    max_size=60,
)


class Counted:
    """Counts every event of a queue with its time, and nothing else."""

    def __init__(self) -> None:
        self.length = 0
        self.entered: list[int] = []
        self.left: list[int] = []

    def in_window(self, times: list[int], window: int) -> int:
        return sum(time // WINDOW_NS == window for time in times)


def made(threshold: float) -> LinkStatus:
    return LinkStatus(A0, is_icol=True, congestion_threshold=threshold, window_ns=WINDOW_NS)


@given(EVENTS, st.floats(0.1, 100))
@settings(max_examples=300)
def test_counts_are_those_of_the_last_finished_window(events: list[Event], threshold: float):
    lazy, eager, counted, now = made(threshold), made(threshold), Counted(), 0
    for what, after_ns, leaves_after_ns in events:
        now += after_ns
        if lazy.leaves_at <= now:
            eager.left(lazy.leaves_at)
            counted.left.append(lazy.leaves_at)
            counted.length -= 1
        lazy.roll(now)
        eager.roll(now)
        if what == "enter":
            lazy.entered(now)
            eager.entered(now)
            counted.entered.append(now)
            counted.length += 1
        elif what == "drop" and lazy.queue_length > (lazy.leaves_at != NEVER):
            lazy.dropped(now)
            eager.dropped(now)
            counted.length -= 1
        elif what == "down":
            lazy.go_down()
            eager.go_down()
            counted = Counted()
        if lazy.queue_length and lazy.leaves_at == NEVER:
            lazy.leaves_at = now + leaves_after_ns
        before = now // WINDOW_NS - 1
        for status in (lazy, eager):
            assert status.queue_length == counted.length
            assert status.q_in == counted.in_window(counted.entered, before)
            assert status.q_out == counted.in_window(counted.left, before)
            assert status.entering == counted.in_window(counted.entered, before + 1)
            assert status.leaving == counted.in_window(counted.left, before + 1)
        assert lazy.longest_uncongested == eager.longest_uncongested
