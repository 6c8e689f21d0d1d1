"""Links count the copies that were put on them to go around others, by reason."""

import pytest

from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm, Broker, Subscription
from octopis.core.routing.algorithms.spreading import LIFE_BITS
from octopis.core.routing.messages import HostChange
from support.overlays import A0, B0, CHAIN, ONE

WANTED = (Subscription("s1", parse_filter("x = 1")),)


@pytest.fixture
def broker() -> Broker:
    """B(b, 0), which knows of a subscription at A(a, 0)."""
    broker = Broker(B0, CHAIN, Algorithm.TNR)
    broker.messages_arrived(A0, [HostChange(A0, 1 << LIFE_BITS, 0, 1, WANTED, (), 0)])
    return broker


def around(broker: Broker) -> tuple[int, int]:
    """Return what went around overload, and faults, over all links."""
    links = broker.link_status.values()
    return sum(each.around_overload for each in links), sum(each.around_fault for each in links)


def test_nothing_is_counted_that_goes_its_own_way(broker: Broker):
    broker.client_publishes([ONE, ONE])
    assert broker.link_status[A0].queue_length == 2
    assert around(broker) == (0, 0)


def test_what_goes_around_an_overloaded_link_is_counted_where_it_goes(broker: Broker):
    broker.link_status[A0].entered(0, 1_000)
    broker.client_publishes([ONE, ONE, ONE])
    assert around(broker) == (3, 0)
    assert broker.link_status[A0].around_overload == 0


def test_what_goes_around_a_dead_link_is_counted_apart(broker: Broker):
    broker.link_down(A0)
    broker.client_publishes([ONE])
    assert around(broker) == (0, 1)


def test_what_a_link_held_when_it_broke_is_counted_when_it_goes_around(broker: Broker):
    unsent = [
        message
        for effect in broker.client_publishes([ONE, ONE])
        for message in getattr(effect, "messages", [])
    ]
    broker.link_down(A0, unsent)
    assert around(broker) == (0, 2)
