from octopis.broker.initial_sync import InitialSync
from octopis.core.routing.messages import HostState, HostVersions, TableSnapshot
from support.overlays import A0, A1, A2, B0, C0


def test_broker_without_links_knows_all_at_once():
    assert InitialSync(A0, []).is_complete


def test_every_neighbour_must_have_sent_its_snapshot():
    sync = InitialSync(A0, [A1, B0])
    sync.arrived(A1, [TableSnapshot(())])
    assert not sync.is_complete
    assert sync.missing == [B0]
    sync.arrived(B0, [TableSnapshot(())])
    assert sync.is_complete


def test_under_bid_hosts_that_a_hello_names_must_have_flooded_anew():
    sync = InitialSync(A0, [A1])
    sync.arrived(A1, [HostVersions({C0: (0, 3, 9), B0: (2, 1, 9), A2: (0, 0, 0), A0: (5, 5, 5)})])
    assert sync.missing == [B0, C0]  # not who has nothing, and not the broker itself
    sync.arrived(A1, [HostState(B0, 1, 1, ())])  # an older flood that was still under way
    assert sync.missing == [B0, C0]
    sync.arrived(A1, [HostState(B0, 3, 1, ()), HostState(C0, 1, 3, ())])
    assert sync.is_complete


def test_host_that_was_heard_before_is_not_waited_for():
    sync = InitialSync(A0, [A1, B0])
    sync.arrived(A1, [HostVersions({C0: (0, 1, 9)}), HostState(C0, 1, 1, ())])
    sync.arrived(B0, [HostVersions({C0: (1, 1, 9)})])
    assert sync.is_complete
