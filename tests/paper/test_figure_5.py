"""Figure 5: the two-step subscription broadcast on the SCOT of Figure 3, every arrow."""

import pytest

from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Subscribe
from octopis.core.routing.table import Entry
from octopis.core.topology import LinkKind, from_catalogue
from support.network import Network
from support.notation import broker, links

SCOT_3 = from_catalogue("figure-3").scot

SOLID = {
    "S1": ("a,0", "a,0>b,0 b,0>c,0 b,0>e,0 e,0>d,0 e,0>f,0"),
    "S2": ("f,0", "f,0>e,0 e,0>d,0 e,0>b,0 b,0>a,0 b,0>c,0"),
    "S3": ("f,1", "f,1>e,1 e,1>d,1 e,1>b,1 b,1>a,1 b,1>c,1"),
}
FROM_CLUSTER_0 = " ".join(f"{region},0>{region},1 {region},0>{region},2" for region in "abcdef")
FROM_CLUSTER_1 = " ".join(f"{region},1>{region},0 {region},1>{region},2" for region in "abcdef")
DASHED = {"S1": FROM_CLUSTER_0, "S2": FROM_CLUSTER_0, "S3": FROM_CLUSTER_1}

BOTH = pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.DNR])
EACH = pytest.mark.parametrize("name", SOLID)


def spread(name: str, algorithm: Algorithm = Algorithm.SNR) -> Network:
    network = Network(SCOT_3, algorithm)
    network.subscribe(broker(SOLID[name][0]), name, name, "TRUE")
    network.settle()
    return network


def entries(network: Network, name: str) -> dict[BrokerId, Entry]:
    return {at: each.table.get(name) for at, each in network.brokers.items()}


@BOTH
@EACH
def test_every_arrow_and_no_other(name: str, algorithm: Algorithm):
    used = spread(name, algorithm).links_used()
    assert set(used) == links(SOLID[name][1]) | links(DASHED[name])
    assert set(used.values()) == {1}


@EACH
def test_solid_arrows_are_acols_of_the_host_cluster_and_dashed_ones_icols(name: str):
    kinds = {
        kind: {link for link in spread(name).links_used() if SCOT_3.link_kind(*link) is kind}
        for kind in LinkKind
    }
    assert kinds == {
        LinkKind.ACOL: links(SOLID[name][1]),
        LinkKind.ICOL: links(DASHED[name]),
    }


@EACH
def test_arrows_are_the_last_hops_in_the_tables(name: str):
    last_hops = {
        (entry.last_hop, at)
        for at, entry in entries(spread(name), name).items()
        if entry.last_hop is not None
    }
    assert last_hops == links(SOLID[name][1]) | links(DASHED[name])


@pytest.mark.parametrize(("name", "bits"), [("S1", "001"), ("S2", "001"), ("S3", "010")])
def test_cbv_s_names_the_host_cluster(name: str, bits: str):
    found = entries(spread(name), name)
    assert {entry.cbv_s.bits(3) for entry in found.values()} == {bits}
    assert len(found) == 18


@EACH
def test_tree_is_no_longer_than_the_diameter_plus_one(name: str):
    host, found = broker(SOLID[name][0]), entries(spread(name), name)

    def length(at: BrokerId) -> int:
        before = found[at].last_hop
        return 0 if before is None else 1 + length(before)

    assert max(map(length, found)) <= SCOT_3.diameter + 1
    assert all(length(at) == SCOT_3.distance(at, host) for at in found)


def test_the_three_together_leave_each_tree_as_it_is_alone():
    network = Network(SCOT_3, Algorithm.SNR)
    for name, (host, _) in SOLID.items():
        network.subscribe(broker(host), name, name, "TRUE")
    network.settle()
    assert len(network.links_used(Subscribe)) > 0
    for name in SOLID:
        assert entries(network, name) == entries(spread(name), name)
