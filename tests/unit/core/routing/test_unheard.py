"""Under BID, of which hosts a broker that has just started must still hear."""

from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Broker
from octopis.core.routing.messages import HostState, HostVersions
from support.overlays import A0, A1, A2, B0, C0, CHAIN


def fresh(*silent: BrokerId) -> Broker:
    """Return a broker whose other neighbours have said what they know: nothing."""
    broker = Broker(A0, CHAIN, Algorithm.BID, links_up=False)
    for neighbour in CHAIN.neighbours(A0):
        broker.link_up(neighbour)
        if neighbour not in silent:
            broker.messages_arrived(neighbour, [HostVersions({})])
    assert broker.unheard == sorted(silent)
    return broker


def test_hosts_that_a_neighbour_names_must_have_flooded_anew():
    broker = fresh(A1)
    known = {C0: (0, 3, 9), B0: (2, 1, 9), A2: (0, 0, 0), A0: (5, 5, 5)}
    broker.messages_arrived(A1, [HostVersions(known)])
    assert broker.unheard == [B0, C0]  # not who has nothing, and not the broker itself
    broker.messages_arrived(A1, [HostState(B0, 1, 1, ())])  # an older flood, still under way
    assert broker.unheard == [B0, C0]
    broker.messages_arrived(A1, [HostState(B0, 3, 1, ()), HostState(C0, 1, 3, ())])
    assert broker.unheard == []


def test_host_that_was_heard_before_is_not_waited_for():
    broker = fresh(A1, B0)
    broker.messages_arrived(A1, [HostVersions({C0: (0, 1, 9)}), HostState(C0, 1, 1, ())])
    broker.messages_arrived(B0, [HostVersions({C0: (1, 1, 9)})])
    assert broker.unheard == []
