from octopis.client.streams import Gap, Notifications, Streams
from octopis.core.filters import parse_filter
from octopis.core.wire.client import Delivery
from octopis.core.wire.published import PublishedBody


def stream_of(*numbers: int) -> Notifications:
    wanted = {number: (f"me/{number}", parse_filter("x > 1")) for number in numbers}
    return Notifications(None, wanted, None)  # type: ignore[arg-type]  # nobody reads


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
    assert streams.to_report() is None  # the other has not read its first
    other._buffer.popleft()
    assert streams.to_report() == 4
    assert streams.to_report() is None
    other.clear()
    assert streams.to_report() is None  # one alone is not worth a message
    streams.deliver(deliveries([99]))
    assert streams.to_report() == 6


def test_stream_that_is_removed_holds_nothing_back():
    streams = Streams(window=4)
    one = stream_of(1)
    streams.add(one)
    streams.deliver(deliveries([1], [1]))
    assert streams.to_report() is None
    streams.remove(one)
    assert one not in streams
    assert streams.to_report() == 2


def test_new_connection_counts_from_what_was_not_read():
    streams = Streams(window=4)
    one = stream_of(1)
    streams.add(one)
    streams.deliver(deliveries([1], [1], [1]))
    one._buffer.popleft()
    assert streams.start_connection() == 2
    streams.deliver(deliveries([1]))
    one.clear()
    assert streams.to_report() == 3  # two from before, and one of this connection


def test_gap_is_told_to_every_stream():
    streams = Streams(window=4)
    one, other = stream_of(1), stream_of(2)
    streams.add(one)
    streams.add(other)
    streams.tell_gap(Gap("lost"))
    assert [stream._buffer[0][1] for stream in streams] == [Gap("lost"), Gap("lost")]
