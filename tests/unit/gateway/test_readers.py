"""What waits for a slow reader: bounds, order, gaps, and what is never dropped."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from octopis.gateway.documents import NotificationOut
from octopis.gateway.readers.reader import Batch, GapNote, KeptBatch, Reader, encode_batch
from octopis.gateway.settings import GatewayLimits

LIMITS = GatewayLimits(reader_notifications=10, reader_bytes=10_000, stall_s=0.05)


def numbered(*numbers: int) -> list[NotificationOut]:
    return [NotificationOut({}, "p", number, 0) for number in numbers]


def numbers_of(reader: Reader, count_max: int | None = None) -> list[int]:
    return [
        each.sequence
        for _, item in reader.take(count_max)
        if isinstance(item, Batch)
        for each in item.notifications
    ]


@given(st.lists(st.one_of(st.integers(1, 8), st.none()), max_size=30))
def test_what_is_taken_and_what_is_told_as_dropped_are_all_in_order(steps: list[int | None]):
    reader, taken, dropped, pushed = Reader(LIMITS, "drop_oldest"), [], 0, 0
    for step in [*steps, None]:
        if step is not None:
            reader.push("s", encode_batch(numbered(*range(pushed, pushed + step))))
            pushed += step
            assert reader.waiting <= LIMITS.reader_notifications
            continue
        for _, item in reader.take():
            if isinstance(item, GapNote):
                dropped += item.dropped or 0
            else:
                taken += [each.sequence for each in item.notifications]
    assert taken == sorted(set(taken))
    assert len(taken) + dropped == pushed
    assert dropped == reader.dropped


def test_what_is_durable_is_not_dropped_and_its_feed_waits_until_it_is_taken():
    reader = Reader(LIMITS, "drop_oldest")
    kept = KeptBatch(numbered(1, 2, 3), [b"{}"] * 3)
    reader.push("d", kept)
    for number in range(100, 130, 5):
        reader.push("s", encode_batch(numbered(*range(number, number + 5))))
    assert not kept.taken.is_set()
    found = numbers_of(reader)
    assert found == [1, 2, 3, *range(120, 130)]
    assert kept.taken.is_set()


def test_no_more_than_a_credit_is_taken():
    reader = Reader(LIMITS, "drop_oldest")
    reader.push("d", KeptBatch(numbered(0), [b"{}"]))
    reader.push("s", encode_batch(numbered(1, 2, 3, 4)))
    assert numbers_of(reader, 3) == [0, 1, 2]
    assert numbers_of(reader, 1) == [3]
    assert numbers_of(reader) == [4]


def test_policies_end_a_slow_reader_or_wait_for_it():
    ended = Reader(LIMITS, "disconnect")
    ended.push("s", encode_batch(numbered(*range(11))))
    assert ended.ending

    async def wait() -> tuple[bool, str]:
        paused = Reader(LIMITS, "pause")
        paused.push("s", encode_batch(numbered(*range(11))))
        room = asyncio.create_task(paused.room())
        await asyncio.sleep(0.01)
        was_waiting = not room.done()
        paused.take()
        await room
        paused.push("s", encode_batch(numbered(*range(11))))
        await paused.room()  # nobody takes anything
        return was_waiting, paused.ending

    was_waiting, reason = asyncio.run(wait())
    assert was_waiting
    assert "taken nothing" in reason


def test_what_waited_for_a_subscription_that_has_ended_is_forgotten():
    reader = Reader(LIMITS, "drop_oldest")
    kept = KeptBatch(numbered(50), [b"{}"])
    reader.push("d", kept)
    for number in range(0, 30, 5):
        reader.push("a", encode_batch(numbered(*range(number, number + 5))))
    reader.gap("a", GapNote("why"))
    reader.push("b", encode_batch(numbered(99)))
    reader.forget("d")
    assert kept.taken.is_set()
    reader.forget("a")
    assert reader.waiting == 1
    (found,) = reader.take()
    assert found[0] == "b"
    assert reader.waiting == 0


def test_publishers_go_on_where_what_held_them_up_is_forgotten():
    async def run() -> None:
        reader = Reader(LIMITS, "pause")
        reader.push("a", encode_batch(numbered(*range(11))))
        room = asyncio.create_task(reader.room())
        await asyncio.sleep(0)
        reader.forget("a")
        await room
        assert not reader.ending

    asyncio.run(run())


def test_gap_of_unknown_size_is_told_whatever_overflows_behind_it():
    reader = Reader(LIMITS, "drop_oldest")
    for reason in ("first", "last"):
        reader.gap("a", GapNote(reason))
        for number in range(0, 30, 5):
            reader.push("b", encode_batch(numbered(*range(number, number + 5))))
    found = reader.take()
    gaps = [(name, item.dropped) for name, item in found if isinstance(item, GapNote)]
    assert sorted(gaps, key=str) == [("a", None), ("b", 50)]
    reader.forget("a")
    assert reader.take() == []
