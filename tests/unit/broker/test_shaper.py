import pytest

from octopis.broker.queue import BURST_S, DELAYED_BYTES_MAX, Shaper
from octopis.broker.settings import Shape


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
