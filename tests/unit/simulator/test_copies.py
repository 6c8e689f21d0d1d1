import gc

import pytest

from octopis.core.routing import Reason
from octopis.simulator.audience import Broadcast, Copy
from octopis.simulator.network import Network
from support.overlays import CHAIN


def spread() -> Broadcast:
    host = Network(CHAIN, 0, exact=False).stations[0]
    return Broadcast(number=3, host=host, subscribed_ns=5)


def test_spread_begins_as_the_one_message_of_its_client():
    begun = spread()
    assert (begun.outstanding, begun.copies, begun.stored) == (1, 0, 0)


def test_copy_does_not_change_on_its_way():
    copy = Copy(spread(), 1, 1000, Reason.SUBSCRIPTION)
    with pytest.raises(AttributeError):
        copy.hops = 2  # type: ignore[misc]


def test_copies_carry_nothing_unless_told():
    copy = Copy(None, 1, 1000, Reason.SYNC)
    assert (copy.mask, copy.message) == (0, None)


def test_collector_has_nothing_to_do_with_copies():
    # A run makes millions of them, with the collector switched off.
    begun = spread()
    assert not gc.is_tracked(begun)
    assert not gc.is_tracked(Copy(begun, 1, 1000, Reason.SUBSCRIPTION))
