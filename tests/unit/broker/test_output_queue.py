from hypothesis import given
from hypothesis import strategies as st

from octopis.broker.queue import OutputQueue
from octopis.broker.settings import QueueBounds
from octopis.core.wire.frames import FrameKind

BOUNDS = QueueBounds(capacity=6, capacity_bytes=60, high_water=4, high_water_bytes=40)


def note(number: int, size: int = 1) -> tuple[FrameKind, bytes]:
    return FrameKind.NOTIFICATIONS, bytes([number]) * size


CHANGE = (FrameKind.CHANGES, b"change")


def test_messages_leave_in_the_order_in_which_they_came():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1), CHANGE, note(2)])
    assert (len(queue), queue.bytes, queue.notifications) == (3, 8, 2)
    assert queue.take(100) == [note(1), CHANGE, note(2)]
    assert (len(queue), queue.bytes, queue.notifications) == (0, 0, 0)


def test_at_most_so_many_bytes_or_messages_are_taken_but_at_least_one():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1, 9), note(2, 3), note(3, 3), note(4, 3)])
    assert queue.take(5) == [note(1, 9)]
    assert queue.take(6) == [note(2, 3), note(3, 3)]
    queue.put([note(5), note(6)])
    assert queue.take(100, 2) == [note(4, 3), note(5)]


def test_congestion_begins_past_the_high_water_mark_and_ends_at_half_of_it():
    queue = OutputQueue(BOUNDS)
    queue.put([note(number) for number in range(4)])
    assert not queue.is_congested
    queue.put([note(5)])
    assert queue.is_congested
    queue.take(100, 2)
    assert queue.is_congested
    queue.take(100, 1)
    assert not queue.is_congested


def test_congestion_counts_bytes_too():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1, 41)])
    assert queue.is_congested
    queue.take(1)
    assert not queue.is_congested


def test_oldest_notifications_are_dropped_and_nothing_else():
    queue = OutputQueue(BOUNDS)
    queue.put([CHANGE, note(1), CHANGE, note(2), note(3), note(4), note(5), note(6)])
    assert queue.is_over_bound
    assert queue.drop_oldest() == 2
    assert queue.take(100) == [CHANGE, CHANGE, note(3), note(4), note(5), note(6)]


def test_newest_notifications_are_dropped_and_nothing_else():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1), note(2), note(3), note(4), note(5), note(6), CHANGE, note(7)])
    assert queue.drop_newest() == 2
    assert queue.take(100) == [note(1), note(2), note(3), note(4), note(5), CHANGE]


def test_bytes_have_a_bound_of_their_own():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1, 30), note(2, 31)])
    assert queue.is_over_bound
    assert queue.drop_oldest() == 1
    assert queue.bytes == 31


def test_changes_of_tables_are_never_dropped():
    queue = OutputQueue(BOUNDS)
    queue.put([CHANGE] * 50)
    assert not queue.is_over_bound
    assert queue.is_full
    assert len(queue.take(1_000)) == 50
    assert not queue.is_full


def test_cleared_queue_says_how_many_notifications_are_lost():
    queue = OutputQueue(BOUNDS)
    queue.put([note(1), CHANGE, note(2), note(3), note(4)])
    assert queue.is_congested
    assert queue.clear() == 4
    assert (len(queue), queue.bytes, queue.is_congested) == (0, 0, False)


@given(st.lists(st.tuples(st.sampled_from(["put", "take", "oldest", "newest"]), st.integers(1, 9))))
def test_counts_always_agree_with_what_is_there(steps: list[tuple[str, int]]):
    queue = OutputQueue(BOUNDS)
    for step, size in steps:
        if step == "put":
            queue.put([note(1, size), CHANGE] if size % 2 else [note(1, size)] * size)
        elif step == "take":
            queue.take(size * 5)
        elif step == "oldest":
            queue.drop_oldest()
        else:
            queue.drop_newest()
        inside = list(queue._messages)
        assert queue.bytes == sum(len(item) for _, item in inside)
        assert queue.notifications == sum(kind is FrameKind.NOTIFICATIONS for kind, _ in inside)
        if step in {"oldest", "newest"}:
            assert not queue.is_over_bound
