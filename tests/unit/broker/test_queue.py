import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.broker.queue import BURST_S, DELAYED_BYTES_MAX, OutputQueue, Shaper
from octopis.broker.settings import QueueBounds, Shape
from octopis.core.wire.frames import FrameKind

BOUNDS = QueueBounds(capacity=6, capacity_bytes=60, high_water=4, high_water_bytes=40)


def note(number: int, size: int = 1) -> tuple[FrameKind, bytes]:
    return FrameKind.NOTIFICATIONS, bytes([number]) * size


def test_messages_leave_in_the_order_in_which_they_came():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1), note(3, 6), note(2)])
    assert (len(queue), queue.bytes) == (3, 8)
    assert queue.take(100) == [note(1), note(3, 6), note(2)]
    assert (len(queue), queue.bytes) == (0, 0)


def test_at_most_so_many_bytes_or_messages_are_taken_but_at_least_one():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1, 9), note(2, 3), note(3, 3), note(4, 3)])
    assert queue.take(5) == [note(1, 9)]
    assert queue.take(6) == [note(2, 3), note(3, 3)]
    queue.put([note(5), note(6)])
    assert queue.take(100, 2) == [note(4, 3), note(5)]


def test_backpressure_begins_past_the_high_water_mark_and_ends_at_half_of_it():
    said: list[bool] = []
    queue = OutputQueue(BOUNDS, said.append)
    queue.put([note(number) for number in range(4)])
    assert not queue.has_backpressure
    queue.put([note(5)])
    assert queue.has_backpressure
    queue.take(100, 2)
    assert queue.has_backpressure
    assert said == [True]
    queue.take(100, 1)
    assert not queue.has_backpressure
    assert said == [True, False]


def test_backpressure_counts_bytes_too():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1, 41)])
    assert queue.has_backpressure
    queue.take(1)
    assert not queue.has_backpressure


def test_oldest_are_dropped_until_it_is_within_its_bound():
    queue = OutputQueue(BOUNDS)
    queue.put([note(number) for number in range(8)])
    assert queue.is_over_bound
    assert queue.drop_oldest() == 2
    assert queue.take(100) == [note(number) for number in range(2, 8)]


def test_newest_are_dropped_until_it_is_within_its_bound():
    queue = OutputQueue(BOUNDS)
    queue.put([note(number) for number in range(8)])
    assert queue.drop_newest() == 2
    assert queue.take(100) == [note(number) for number in range(6)]


def test_bytes_have_a_bound_of_their_own():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1, 30), note(2, 31)])
    assert queue.is_over_bound
    assert queue.drop_oldest() == 1
    assert queue.bytes == 31


def test_cleared_queue_says_how_many_notifications_are_lost():
    said: list[bool] = []
    queue = OutputQueue(BOUNDS, said.append)
    queue.put([note(1), note(2), note(3), note(4), note(5)])
    assert queue.has_backpressure
    assert queue.clear() == 5
    assert (len(queue), queue.bytes, queue.has_backpressure) == (0, 0, False)
    assert said == [True, False]


@given(st.lists(st.tuples(st.sampled_from(["put", "take", "oldest", "newest"]), st.integers(1, 9))))
def test_counts_always_agree_with_what_is_there(steps: list[tuple[str, int]]):
    queue = OutputQueue(BOUNDS)
    for step, size in steps:
        if step == "put":
            queue.put([note(1, size), note(2)] if size % 2 else [note(1, size)] * size)
        elif step == "take":
            queue.take(size * 5)
        elif step == "oldest":
            queue.drop_oldest()
        else:
            queue.drop_newest()
        inside = list(queue.messages)
        assert queue.bytes == sum(len(item) for _, item in inside)
        assert queue.has_backpressure or not queue.is_over_bound  # so callers need not ask twice
        if step in {"oldest", "newest"}:
            assert not queue.is_over_bound


def carried(shaper: Shaper, seconds: float, message: int) -> int:
    """Return how many bytes leave a queue that is never empty, in so many seconds."""
    now, total = 0.0, 0
    while now <= seconds:
        while shaper.budget(now) > 0:
            shaper.send(bytes(message), now)
            total += message
        shaper.arrived(now)
        again = shaper.next_event(now, waiting=True)
        assert again is not None
        assert again > now
        now = again
    return total


@pytest.mark.parametrize("message", [10, 100, 3_000])
@pytest.mark.parametrize("bandwidth", [1_000, 100_000])
def test_bandwidth_is_kept_whatever_the_size_of_messages(bandwidth: int, message: int):
    total = carried(Shaper(Shape(bandwidth), 0.0), 10.0, message)
    assert 10 * bandwidth * 0.98 - message <= total <= 10 * bandwidth * 1.01 + message


def test_link_that_was_idle_lets_only_a_short_burst_through():
    shaper = Shaper(Shape(10_000), 0.0)
    assert shaper.budget(3_600.0) == 10_000 * BURST_S


def test_latency_holds_bytes_back_and_keeps_their_order():
    shaper = Shaper(Shape(latency_ms=100), 0.0)
    shaper.send(b"one", 0.0)
    shaper.send(b"two", 0.05)
    assert shaper.next_event(0.05, waiting=False) == pytest.approx(0.1)
    assert shaper.arrived(0.09) == []
    assert shaper.arrived(0.11) == [b"one"]
    assert shaper.arrived(0.2) == [b"two"]
    assert shaper.next_event(0.2, waiting=True) is None


def test_no_latency_lets_bytes_through_at_once():
    shaper = Shaper(Shape(1_000), 0.0)
    shaper.send(b"one", 1.0)
    assert shaper.arrived(1.0) == [b"one"]


def test_what_is_under_way_on_a_link_with_latency_is_bounded():
    shaper = Shaper(Shape(latency_ms=1_000), 0.0)
    shaper.send(bytes(DELAYED_BYTES_MAX), 0.0)
    assert shaper.budget(0.5) == 0
    assert shaper.next_event(0.5, waiting=True) == 1.0
    shaper.arrived(1.0)
    assert shaper.budget(1.0) == DELAYED_BYTES_MAX


def test_cut_link_forgets_what_was_under_way():
    shaper = Shaper(Shape(latency_ms=100), 0.0)
    shaper.send(b"one", 0.0)
    assert shaper.is_carrying
    shaper.clear()
    assert not shaper.is_carrying
    assert shaper.arrived(1.0) == []
