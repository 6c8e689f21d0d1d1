import pickle
from time import process_time

import pytest

from octopis.core.model import BrokerId
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.planner import grow
from octopis.core.topology.scot import SCOT, Link, LinkKind
from octopis.errors import InvalidTopology, LabelOrderError, UnknownVertex

LINE = AcyclicFactor("abc", [("a", "b"), ("b", "c")])
SMALL = SCOT(LINE, ConnectivityFactor.complete(2))


def brokers(*texts: str) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId.parse, texts))


def test_brokers_come_region_by_region_and_then_by_cluster():
    assert SMALL.brokers == brokers("a,0", "a,1", "b,0", "b,1", "c,0", "c,1")


def test_regions_and_clusters_hold_their_brokers():
    assert SMALL.regions == ("a", "b", "c")
    assert SMALL.clusters == (0, 1)
    assert SMALL.region("b") == brokers("b,0", "b,1")
    assert SMALL.cluster(1) == brokers("a,1", "b,1", "c,1")


def test_negative_cluster_is_no_cluster():
    with pytest.raises(KeyError):
        SMALL.cluster(-1)


def test_neighbours_are_primary_and_then_secondary():
    broker = BrokerId("b", 1)
    assert SMALL.primary_neighbours(broker) == brokers("a,1", "c,1")
    assert SMALL.secondary_neighbours(broker) == brokers("b,0")
    assert SMALL.neighbours(broker) == brokers("a,1", "c,1", "b,0")


def test_edge_and_inner_brokers():
    assert [SMALL.is_edge(broker) for broker in SMALL.cluster(0)] == [True, False, True]
    assert [SMALL.is_inner(broker) for broker in SMALL.cluster(0)] == [False, True, False]


def test_broker_of_a_single_region_is_an_edge_broker():
    scot = SCOT(AcyclicFactor.single("a"), ConnectivityFactor.complete(3))
    assert all(map(scot.is_edge, scot.brokers))


def test_link_kind_is_known_in_both_directions():
    a0, b0, a1 = brokers("a,0", "b,0", "a,1")
    assert SMALL.link_kind(a0, b0) is SMALL.link_kind(b0, a0) is LinkKind.ACOL
    assert SMALL.link_kind(a0, a1) is SMALL.link_kind(a1, a0) is LinkKind.ICOL


@pytest.mark.parametrize("other", ["c,0", "b,1", "a,0"])
def test_brokers_that_no_link_joins_have_no_link_kind(other: str):
    with pytest.raises(InvalidTopology, match=r"no link joins B\(a, 0\) and B"):
        SMALL.link_kind(BrokerId("a", 0), BrokerId.parse(other))


def test_links_of_one_cluster_and_of_one_region():
    a1, b1, c1, c0 = brokers("a,1", "b,1", "c,1", "c,0")
    assert SMALL.acols_of_cluster(1) == (
        Link(a1, b1, LinkKind.ACOL),
        Link(b1, c1, LinkKind.ACOL),
    )
    assert SMALL.icols_of_region("c") == (Link(c0, c1, LinkKind.ICOL),)


def test_all_links_are_those_of_the_clusters_and_of_the_regions():
    assert SMALL.acols == SMALL.acols_of_cluster(0) + SMALL.acols_of_cluster(1)
    assert SMALL.icols == tuple(SMALL.icols_of_region(region)[0] for region in "abc")


def test_distance_counts_one_icol_between_clusters():
    a0, c0, c1 = brokers("a,0", "c,0", "c,1")
    assert (SMALL.distance(a0, a0), SMALL.distance(a0, c0), SMALL.distance(a0, c1)) == (0, 2, 3)


def test_longest_path_takes_an_icol_only_where_there_are_several_clusters():
    assert (SMALL.diameter, SMALL.longest_path) == (2, 3)
    assert SCOT(LINE, ConnectivityFactor.complete(1)).longest_path == 2


def test_factors_in_the_wrong_order_are_refused():
    with pytest.raises(
        LabelOrderError, match=r"label order property: .* regions come first"
    ) as caught:
        SCOT(ConnectivityFactor.complete(2), LINE)  # type: ignore[arg-type]
    assert caught.value.label == "ConnectivityFactor, AcyclicFactor"


@pytest.mark.parametrize("text", ["b,1", " B(b, 1) "])
def test_broker_is_found_as_people_write_it(text: str):
    assert SMALL.broker(text) == BrokerId("b", 1)


def test_broker_of_an_unknown_region_is_refused_with_a_suggestion():
    scot = SCOT(AcyclicFactor(["north", "south"], [("north", "south")]), SMALL.connectivity)
    with pytest.raises(UnknownVertex, match="did you mean 'south'") as caught:
        scot.broker("suth,1")
    assert caught.value.vertex == "suth"


def test_broker_of_an_unknown_cluster_is_refused_with_the_clusters():
    with pytest.raises(UnknownVertex, match=r"names 2, .*; the clusters are 0 to 1") as caught:
        SMALL.broker("b,2")
    assert caught.value.vertex == 2


def test_cluster_before_region_is_refused():
    with pytest.raises(LabelOrderError, match="did you mean b,1") as caught:
        SMALL.broker("1,b")
    assert caught.value.label == "1,b"


def test_overlays_of_equal_factors_are_equal():
    twin = SCOT(AcyclicFactor.from_edges([("a", "b"), ("c", "b")]), ConnectivityFactor(2))
    assert twin == SMALL
    assert hash(twin) == hash(SMALL)
    assert SCOT(LINE, ConnectivityFactor(3)) != SMALL
    assert SMALL != "SCOT"


def test_pickle_holds_the_factors_alone():
    large = grow(10_000, 20)
    frozen = pickle.dumps(large)
    assert len(frozen) < 20_000
    assert pickle.loads(frozen) == large  # noqa: S301 - our own bytes


def test_repr_is_short():
    assert repr(SMALL) == "<SCOT of 3 regions x 2 clusters>"


@pytest.mark.parametrize(("regions", "clusters"), [("ab", 50_001), ("a", 10_000)])
def test_overlay_that_no_machine_holds_is_refused(regions: str, clusters: int):
    tree = AcyclicFactor(regions, [tuple(regions)] if len(regions) > 1 else [])
    with pytest.raises(InvalidTopology, match="is too large: OctopiS builds at most 100,000"):
        SCOT(tree, ConnectivityFactor.complete(clusters))


def test_ten_thousand_brokers_are_built_in_two_seconds():
    before = process_time()
    scot = grow(10_000, 20)
    links = len(scot.acols) + len(scot.icols)
    assert process_time() - before < 2
    assert (len(scot.regions), len(scot.brokers), links) == (500, 10_000, 499 * 20 + 500 * 190)


def test_unknown_region_is_refused_with_the_regions_where_they_are_few():
    with pytest.raises(
        UnknownVertex, match=r"'z', which is not a vertex; the regions are a, b, c$"
    ):
        SMALL.broker("z,0")
    with pytest.raises(UnknownVertex, match=r"'z', which is not a vertex$"):
        grow(20, 2).broker("z,0")


def test_kinds_are_spelled_as_in_the_paper():
    assert [kind.value for kind in LinkKind] == ["aCOL", "iCOL"]
    assert LinkKind("aCOL") is LinkKind.ACOL


def test_link_reads_well():
    link = Link(BrokerId("a", 0), BrokerId("b", 0), LinkKind.ACOL)
    assert str(link) == "aCOL B(a, 0) - B(b, 0)"
