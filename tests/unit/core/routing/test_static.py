import pytest

from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, NotificationMessage
from support.network import Network
from support.overlays import A0, A1, A2, B0, B1, B2, C0, C1, CHAIN, ONE, TWO, enqueued


@pytest.fixture
def network() -> Network:
    """Somebody wants x = 1 at A0, C0 and C1."""
    network = Network(CHAIN, Algorithm.SNR)
    for place in (A0, C0, C1):
        network.subscribe(place, "client", f"at {place}", "x = 1")
    network.settle()
    return network


def test_publishers_host_sends_one_copy_onto_each_link_with_a_match(network: Network):
    network.subscribe(A0, "client", "second", "x > 0")
    network.settle()
    sent = enqueued(network.brokers[B0].client_publishes([ONE]))
    assert sent == {link: [NotificationMessage(ONE)] for link in (A0, C0, B1)}


@pytest.mark.parametrize(
    ("at", "sender", "links"), [(B0, A0, {C0}), (B0, B2, {A0, C0}), (B1, A1, {C1}), (B2, A2, set())]
)
def test_any_other_broker_stays_in_its_cluster_and_spares_the_sender(
    network: Network, at: BrokerId, sender: BrokerId, links: set[BrokerId]
):
    sent = enqueued(network.brokers[at].messages_arrived(sender, [NotificationMessage(ONE)]))
    assert set(sent) == links


def test_notification_that_nobody_wants_goes_nowhere(network: Network):
    sent = enqueued(network.brokers[B0].client_publishes([TWO]))
    assert sent == {}
