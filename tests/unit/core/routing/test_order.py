"""What docs/routing.md says about order, under the most unfair timing that links allow."""

import pytest

from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from support.network import Network
from support.notation import broker

HOST, SUBSCRIBER = broker("b,2"), broker("b,0")
FREE_AGAIN = (HOST, SUBSCRIBER)


def order_of_arrival(algorithm: Algorithm) -> list[int]:
    """Publish one notification while a link is overloaded, and one when it is free again."""
    network = Network(from_catalogue("figure-7").scot, algorithm)
    network.subscribe(SUBSCRIBER, "S", "S", "TRUE")
    network.subscribe(broker("b,1"), "other", "other", "TRUE")
    network.settle()
    status = network.brokers[HOST].link_status[SUBSCRIBER]
    status.queue_length += 11
    network.publish(HOST, Notification({"number": 1}))
    status.queue_length -= 11
    network.publish(HOST, Notification({"number": 2}))
    while network.queues.get(FREE_AGAIN):
        network.step(FREE_AGAIN)
    network.settle()
    arrived = [each for each in network.delivered if each.client == "S"]
    return [each.notification.attributes["number"] for each in arrived]


@pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.BID])
def test_one_way_keeps_the_order(algorithm: Algorithm):
    assert order_of_arrival(algorithm) == [1, 2]


def test_dynamic_routing_may_let_a_later_notification_arrive_first():
    assert order_of_arrival(Algorithm.DNR) == [2, 1]
