import pytest

from octopis.core.routing import Deliver, LinkStatusTable, NotificationMessage
from octopis.core.routing.outbox import LocalClients, Outbox
from support.overlays import ONE, TWO


@pytest.fixture
def outbox() -> Outbox:
    return Outbox(LinkStatusTable())


@pytest.fixture
def clients(outbox: Outbox) -> LocalClients:
    clients = LocalClients(outbox)
    for client, subscription in (("one", "s"), ("other", "t"), ("one", "u")):
        clients.hold(client, subscription)
    return clients


def test_subscriptions_of_a_client_come_oldest_first(clients: LocalClients):
    assert clients.subscriptions("one") == ["s", "u"]
    assert clients.subscriptions("stranger") == []


def test_released_subscription_has_no_owner(clients: LocalClients):
    clients.release("s")
    assert clients.owner("s") is None
    assert clients.subscriptions("one") == ["u"]
    assert clients.owner("t") == "other"


def test_each_client_gets_a_notification_once(clients: LocalClients, outbox: Outbox):
    clients.deliver([NotificationMessage(ONE), NotificationMessage(TWO)], [["u", "t", "s"], []])
    assert outbox.take() == [Deliver("one", ONE, ["u", "s"]), Deliver("other", ONE, ["t"])]
