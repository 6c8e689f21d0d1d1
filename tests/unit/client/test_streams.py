import asyncio
import logging

import pytest

from octopis.client.durable import DurableNotifications
from octopis.client.streams import Gap, Notifications, Received, Streams
from octopis.core.filters import parse_filter
from octopis.core.wire.client import Delivery
from octopis.core.wire.published import PublishedBody
from octopis.errors import ConnectionFailed


def stream_of(*numbers: int) -> Notifications:
    filters = {number: (f"me/{number}", parse_filter("x > 1")) for number in numbers}
    return Notifications(None, filters, None)  # type: ignore[arg-type]  # nobody reads


def deliveries(*numbers: list[int]) -> list[Delivery]:
    return [Delivery(each, PublishedBody({}, b"", "p", at, 0)) for at, each in enumerate(numbers)]


def held(stream: Notifications) -> list[int]:
    return [number for number, _ in stream._buffer]


def test_delivery_goes_once_to_every_stream_that_it_names():
    streams = Streams(window=100)
    one, other = stream_of(1, 2), stream_of(3)
    streams.add(one)
    streams.add(other)
    streams.deliver(deliveries([1, 2], [3], [2, 3], [77]))
    assert (held(one), held(other)) == ([0, 2], [1, 2])


def test_single_stream_gets_only_what_names_it():
    streams = Streams(window=100)
    only = stream_of(1)
    streams.add(only)
    streams.deliver(deliveries([1], [77], [77, 1]))
    assert held(only) == [0, 2]


def test_consumed_is_what_the_slowest_stream_has_read():
    streams = Streams(window=8)
    one, other = stream_of(1), stream_of(2)
    streams.add(one)
    streams.add(other)
    streams.deliver(deliveries([1], [2], [1], [1], [2]))
    one.clear()
    assert streams.to_report(0.0) is None  # the other has not read its first
    other._buffer.popleft()
    assert streams.to_report(0.0) == 4
    assert streams.to_report(0.0) is None
    other.clear()
    assert streams.to_report(0.0) is None  # one alone is not worth a message
    streams.deliver(deliveries([99]))
    assert streams.to_report(0.0) == 6


def test_stream_that_is_removed_holds_nothing_back():
    streams = Streams(window=4)
    one = stream_of(1)
    streams.add(one)
    streams.deliver(deliveries([1], [1]))
    assert streams.to_report(0.0) is None
    streams.remove(one)
    assert one not in streams
    assert streams.to_report(0.0) == 2


def test_new_session_counts_from_what_was_not_read():
    streams = Streams(window=4)
    one = stream_of(1)
    streams.add(one)
    streams.deliver(deliveries([1], [1], [1]))
    one._buffer.popleft()
    assert streams.dial() == (2, 3)
    streams.welcomed(resumed=False)
    streams.deliver(deliveries([1]))
    assert streams.dial() == (3, 3)  # one was read before the session began
    one.clear()
    assert streams.to_report(0.0) == 3  # two from before, and one of this session


def test_session_that_goes_on_counts_on_and_reports_again_what_may_not_have_arrived():
    streams = Streams(window=4)
    one = stream_of(1)
    streams.add(one)
    streams.deliver(deliveries([1], [1], [1]))
    one.clear()
    assert streams.to_report(5.0) == 3
    assert streams.dial() == (0, 3)
    streams.welcomed(resumed=True)
    assert streams.to_report(5.0) == 3
    streams.deliver(deliveries([1]))
    assert streams.dial() == (1, 4)


def test_gap_is_told_with_the_delivery_after_it_or_comes_again_with_it():
    streams = Streams(window=4)
    one = stream_of(1)
    streams.add(one)
    gap, (delivery,) = Gap("too slow", 7), deliveries([1])
    streams.gap_before_next(gap)
    assert not one._buffer
    streams.welcomed(resumed=True)  # the broker says both again
    streams.gap_before_next(gap)
    streams.deliver([delivery])
    assert [item for _, item in one._buffer] == [gap, delivery]
    streams.gap_before_next(gap)
    streams.welcomed(resumed=False)  # nobody says it again
    assert [item for _, item in one._buffer] == [gap, delivery, gap]


def test_gap_is_told_to_every_stream():
    streams = Streams(window=4)
    one, other = stream_of(1), stream_of(2)
    streams.add(one)
    streams.add(other)
    streams.tell_gap(Gap("lost"))
    assert [stream._buffer[0][1] for stream in streams] == [Gap("lost"), Gap("lost")]


class Home:
    """Counts what streams tell their client."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def open_stream(self, _: Notifications) -> None:
        self.calls.append("open")

    async def close_stream(self, _: Notifications) -> None:
        self.calls.append("close")

    def consumed(self) -> None:
        self.calls.append("consumed")


def subscribed(home: Home, on_gap=None) -> Notifications:
    filters = {4: ("me/4", parse_filter("x > 1")), 5: ("me/5", parse_filter("x > 2"))}
    return Notifications(home, filters, on_gap)


def delivery(number: int, *numbers: int) -> Delivery:
    body = PublishedBody({"x": number}, b"p", "you", number, 7)
    return Delivery(list(numbers), body)


def test_notifications_come_in_order_with_their_subscriptions():
    async def work() -> None:
        home = Home()
        async with subscribed(home) as stream:
            stream.push([(0, delivery(1, 4)), (1, delivery(2, 5, 99, 4))])
            assert stream.oldest == 0
            first, second = await anext(stream), await anext(stream)
            assert (first.attributes, first.payload, first.publisher) == ({"x": 1}, b"p", "you")
            assert (first.sequence, first.intended_ns) == (1, 7)
            assert first.subscriptions == ("me/4",)
            assert second.subscriptions == ("me/5", "me/4")  # 99 is another stream's
            assert stream.oldest is None
        assert home.calls == ["open", "consumed", "consumed", "close"]

    asyncio.run(work())


def test_reader_waits_until_something_comes():
    async def work() -> None:
        stream = subscribed(Home())
        await stream.open()
        reading = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        assert not reading.done()
        stream.push([(0, delivery(1, 4))])
        assert (await reading).sequence == 1

    asyncio.run(work())


def test_batches_bring_all_that_is_there():
    async def work() -> None:
        stream = subscribed(Home())
        stream.push([(number, delivery(number, 4)) for number in range(5)])
        batches = stream.batches()
        assert [each.sequence for each in await anext(batches)] == [0, 1, 2, 3, 4]
        stream.push([(5, delivery(5, 4))])
        stream.end()
        assert [[each.sequence for each in batch] async for batch in batches] == [[5]]

    asyncio.run(work())


def test_gap_is_told_at_its_place():
    async def work() -> None:
        happened: list[object] = []
        stream = subscribed(Home(), on_gap=happened.append)
        stream.push([(0, delivery(1, 4)), (1, Gap("slow", 3)), (1, delivery(2, 4))])
        happened += [(await anext(stream)).sequence]
        happened += [(await anext(stream)).sequence]
        assert happened == [1, Gap("slow", 3), 2]
        assert stream.gaps == 1

    asyncio.run(work())


def test_gap_that_nobody_asks_for_is_in_the_log(caplog):
    async def work() -> None:
        stream = subscribed(Home())
        stream.push([(0, Gap("the connection was lost")), (0, delivery(1, 4))])
        await anext(stream)

    with caplog.at_level(logging.WARNING):
        asyncio.run(work())
    assert "notifications may be missing: the connection was lost" in caplog.text


def test_ended_stream_gives_what_it_has_and_then_stops():
    async def work() -> None:
        stream = subscribed(Home())
        stream.push([(0, delivery(1, 4))])
        stream.end()
        stream.push([(1, delivery(2, 4))])
        assert [each.sequence async for each in stream] == [1]

    asyncio.run(work())


def test_stream_whose_end_was_not_wanted_raises_why():
    async def work() -> None:
        stream = subscribed(Home())
        await stream.open()
        reading = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        stream.end(ConnectionFailed("gave up"))
        stream.end()
        with pytest.raises(ConnectionFailed, match="gave up"):
            await reading

    asyncio.run(work())


def test_batches_end_at_a_gap_so_that_it_is_told_at_its_place():
    seen: list[object] = []

    async def run() -> None:
        streams = Streams(window=100)
        one = Notifications(
            _Home(),  # type: ignore[arg-type]  # it only has to hear that something was read
            {1: ("me/1", parse_filter("x > 1"))},
            lambda gap: seen.append(gap.reason),
        )
        streams.add(one)
        for reason in ("first", "second", "last"):
            streams.deliver(deliveries([1], [1]))
            streams.tell_gap(Gap(reason))
        one.end()
        async for batch in one.batches():
            seen.extend([each.sequence for each in batch])

    asyncio.run(run())
    assert seen == [0, 1, "first", 0, 1, "second", 0, 1, "last"]


def test_durable_batches_end_at_a_gap_as_well():
    seen: list[object] = []
    stream = DurableNotifications(None, "d", None, on_gap=lambda gap: seen.append(gap.reason))  # type: ignore[arg-type]  # nobody reads
    for position in (1, 2):
        stream._buffer.append(Received({}, b"", "p", position, 0, (), position))
        stream._buffer.append(Gap(f"after {position}"))
    stream._buffer.append(Received({}, b"", "p", 3, 0, (), 3))
    for _ in range(3):
        seen.extend([each.position for each in asyncio.run(stream.fetch())])
    assert seen == [1, "after 1", 2, "after 2", 3]


class _Home:
    def consumed(self) -> None:
        """Nobody waits for it."""
