"""The sets that section 4 of the paper gives for the overlay of Figure 3."""

from octopis.core.model import BrokerId
from octopis.core.topology import Link, LinkKind, from_catalogue

SCOT_3 = from_catalogue("figure-3").scot


def brokers(*texts: str) -> set[BrokerId]:
    return set(map(BrokerId.parse, texts))


def ends(links: tuple[Link, ...]) -> set[frozenset[BrokerId]]:
    return {frozenset((link.source, link.target)) for link in links}


def pairs(*texts: str) -> set[frozenset[BrokerId]]:
    return {frozenset(brokers(*text.split())) for text in texts}


class TestClusterAndRegion:
    """Section 4.1."""

    def test_clusters_are_the_horizontal_layers(self):
        assert SCOT_3.clusters == (0, 1, 2)
        assert set(SCOT_3.cluster(1)) == brokers("a,1", "b,1", "c,1", "d,1", "e,1", "f,1")

    def test_regions_are_the_vertical_layers(self):
        assert SCOT_3.regions == ("a", "b", "c", "d", "e", "f")
        assert set(SCOT_3.region("e")) == brokers("e,0", "e,1", "e,2")


class TestOverlayLinks:
    """Section 4.2, and the sets of the Example (4.5)."""

    def test_acols_of_cluster_0(self):
        links = SCOT_3.acols_of_cluster(0)
        assert {link.kind for link in links} == {LinkKind.ACOL}
        assert ends(links) == pairs("a,0 b,0", "b,0 c,0", "d,0 e,0", "e,0 f,0", "b,0 e,0")

    def test_icols_of_region_a(self):
        links = SCOT_3.icols_of_region("a")
        assert {link.kind for link in links} == {LinkKind.ICOL}
        assert ends(links) == pairs("a,0 a,1", "a,0 a,2", "a,1 a,2")

    def test_acols_join_brokers_of_a_cluster_and_icols_brokers_of_a_region(self):
        assert all(link.source.cluster == link.target.cluster for link in SCOT_3.acols)
        assert all(link.source.region == link.target.region for link in SCOT_3.icols)

    def test_33_links_in_all(self):
        assert len(ends(SCOT_3.acols) | ends(SCOT_3.icols)) == 33


class TestClassification:
    """Section 4.3, and the sets of the Example (4.5)."""

    def test_regions_of_edge_brokers(self):
        edge = {broker for broker in SCOT_3.brokers if SCOT_3.is_edge(broker)}
        assert edge == {broker for region in "acdf" for broker in SCOT_3.region(region)}

    def test_regions_of_inner_brokers(self):
        inner = {broker for broker in SCOT_3.brokers if SCOT_3.is_inner(broker)}
        assert inner == {broker for region in "be" for broker in SCOT_3.region(region)}

    def test_primary_neighbours_of_b_0(self):
        # Paper deviation: its example leaves out B(e,0), which Figure 3 joins to B(b,0).
        assert set(SCOT_3.primary_neighbours(BrokerId("b", 0))) == brokers("a,0", "c,0", "e,0")

    def test_secondary_neighbours_of_b_0(self):
        assert set(SCOT_3.secondary_neighbours(BrokerId("b", 0))) == brokers("b,1", "b,2")

    def test_one_icol_leads_to_any_other_cluster(self):
        for broker in SCOT_3.brokers:
            for other in SCOT_3.secondary_neighbours(broker):
                assert SCOT_3.link_kind(broker, other) is LinkKind.ICOL
            reached = {other.cluster for other in SCOT_3.secondary_neighbours(broker)}
            assert reached | {broker.cluster} == set(SCOT_3.clusters)
