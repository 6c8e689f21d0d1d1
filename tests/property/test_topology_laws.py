"""Laws that hold for every tree and every number of clusters, with networkx as second opinion."""

import pickle
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.model import BrokerId
from octopis.core.model.broker_id import check_region_label
from octopis.core.topology import (
    SCOT,
    AcyclicFactor,
    ConnectivityFactor,
    LinkKind,
    NamedTopology,
    format_topology,
    grow,
    parse_topology,
    plan,
)
from octopis.errors import AmbiguousLabel, CycleFound, DoubledEdge, NotConnected
from octopis.explain.layout import column_order, lay_out


def is_plain(label: str) -> bool:
    try:
        check_region_label(label)
    except AmbiguousLabel:
        return False
    return True


LABELS = st.text(min_size=1, max_size=6).filter(is_plain)


@st.composite
def trees(draw: st.DrawFn, vertices_min: int = 1, vertices_max: int = 12) -> AcyclicFactor:
    """Any tree: each vertex but the first hangs on one before it; then all is shuffled."""
    labels = draw(st.lists(LABELS, min_size=vertices_min, max_size=vertices_max, unique=True))
    edges = []
    for place in range(1, len(labels)):
        parent = labels[draw(st.integers(0, place - 1))]
        turned = draw(st.booleans())
        edges.append((labels[place], parent) if turned else (parent, labels[place]))
    return AcyclicFactor(draw(st.permutations(labels)), draw(st.permutations(edges)))


@st.composite
def overlays(draw: st.DrawFn, vertices_max: int = 12, clusters_max: int = 6) -> SCOT:
    clusters = draw(st.integers(1, clusters_max))
    return SCOT(draw(trees(vertices_max=vertices_max)), ConnectivityFactor.complete(clusters))


def graph_of_tree(tree: AcyclicFactor) -> nx.Graph:
    graph = nx.Graph(tree.edges)
    graph.add_nodes_from(tree.vertices)
    return graph


def graph_of(scot: SCOT) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(scot.brokers)
    graph.add_edges_from((link.source, link.target) for link in (*scot.acols, *scot.icols))
    return graph


def edge_set(graph: nx.Graph) -> set[frozenset[object]]:
    return {frozenset(edge) for edge in graph.edges}


@given(overlays())
def test_numbers_of_brokers_and_links_follow_from_the_factors(scot: SCOT):
    tree, complete = scot.acyclic, scot.connectivity
    assert len(scot.brokers) == len(tree.vertices) * len(complete.vertices)
    assert len(scot.acols) == len(tree.edges) * len(complete.vertices)
    assert len(scot.icols) == len(tree.vertices) * len(complete.edges)
    assert len(tree.edges) == len(tree.vertices) - 1
    assert len(complete.edges) == complete.size


@given(overlays())
def test_overlay_is_the_cartesian_product_in_either_order(scot: SCOT):
    tree, complete = graph_of_tree(scot.acyclic), nx.complete_graph(len(scot.clusters))
    ours = graph_of(scot)
    forth = nx.cartesian_product(tree, complete)
    back = nx.relabel_nodes(nx.cartesian_product(complete, tree), lambda pair: pair[::-1])
    assert set(ours.nodes) == set(forth.nodes) == set(back.nodes)
    assert edge_set(ours) == edge_set(forth) == edge_set(back)


@given(overlays())
def test_neighbours_are_mutual_and_are_those_of_the_links(scot: SCOT):
    graph = graph_of(scot)
    for broker in scot.brokers:
        neighbours = scot.neighbours(broker)
        assert len(set(neighbours)) == len(neighbours)
        assert set(neighbours) == set(graph[broker])
        for other in neighbours:
            assert broker in scot.neighbours(other)
            assert scot.link_kind(broker, other) is scot.link_kind(other, broker)


@given(overlays())
def test_primary_neighbours_share_the_cluster_and_secondary_ones_the_region(scot: SCOT):
    for broker in scot.brokers:
        for other in scot.primary_neighbours(broker):
            assert other.cluster == broker.cluster
            assert scot.link_kind(broker, other) is LinkKind.ACOL
        for other in scot.secondary_neighbours(broker):
            assert other.region == broker.region
            assert scot.link_kind(broker, other) is LinkKind.ICOL


@given(overlays())
def test_all_brokers_of_a_region_are_of_one_kind(scot: SCOT):
    for region in scot.regions:
        kinds = {scot.is_edge(broker) for broker in scot.region(region)}
        assert kinds == {len(scot.acyclic.neighbours(region)) <= 1}


@given(overlays())
def test_clusters_and_regions_each_part_the_brokers(scot: SCOT):
    by_region = [broker for region in scot.regions for broker in scot.region(region)]
    by_cluster = [broker for cluster in scot.clusters for broker in scot.cluster(cluster)]
    assert tuple(by_region) == scot.brokers
    assert sorted(by_cluster) == sorted(scot.brokers)


@given(overlays())
def test_links_name_the_broker_first_that_comes_first(scot: SCOT):
    place = {broker: number for number, broker in enumerate(scot.brokers)}
    links = (*scot.acols, *scot.icols)
    assert all(place[link.source] < place[link.target] for link in links)


@given(overlays(vertices_max=8, clusters_max=4))
def test_distance_is_that_of_a_shortest_path(scot: SCOT):
    lengths = dict(nx.all_pairs_shortest_path_length(graph_of(scot)))
    for one in scot.brokers:
        for other in scot.brokers:
            assert scot.distance(one, other) == lengths[one][other]
    assert scot.longest_path == max(max(row.values()) for row in lengths.values())
    assert scot.diameter == nx.diameter(graph_of_tree(scot.acyclic))


@given(overlays(vertices_max=7, clusters_max=4))
@settings(max_examples=60, deadline=None)
def test_tolerated_deaths_are_one_less_than_the_connectivity(scot: SCOT):
    graph = graph_of(scot)
    complete = nx.density(graph) == 1 or len(graph) == 1
    expected = len(graph) - 1 if complete else nx.node_connectivity(graph) - 1
    assert plan(scot).tolerated_deaths == expected


@given(overlays(vertices_max=4, clusters_max=3))
@settings(max_examples=30, deadline=None)
def test_any_tolerated_deaths_leave_the_rest_connected_and_one_more_may_not(scot: SCOT):
    graph = graph_of(scot)

    def connected_without(dead: tuple[BrokerId, ...]) -> bool:
        rest = graph.copy()
        rest.remove_nodes_from(dead)
        return len(rest) > 0 and nx.is_connected(rest)

    deaths = plan(scot).tolerated_deaths
    assert all(map(connected_without, combinations(scot.brokers, deaths)))
    assert not all(map(connected_without, combinations(scot.brokers, deaths + 1)))


@given(overlays())
def test_two_step_broadcast_sends_to_every_other_broker_once(scot: SCOT):
    assert plan(scot).ims_two_step == len(scot.brokers) - 1


@given(overlays())
def test_flooding_costs_twice_the_links_less_the_first_arrivals(scot: SCOT):
    links = len(scot.acols) + len(scot.icols)
    assert plan(scot).ims_flooding == 2 * links - len(scot.brokers) + 1


@given(overlays(), st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_topology_reads_back_from_its_toml(scot: SCOT, name: str, description: str):
    topology = NamedTopology(name, description, scot)
    assert parse_topology(format_topology(topology), "x.toml") == topology


@given(overlays())
def test_pickled_overlay_is_equal_and_answers_alike(scot: SCOT):
    copy = pickle.loads(pickle.dumps(scot))  # noqa: S301 - our own bytes
    assert copy == scot
    assert hash(copy) == hash(scot)
    assert copy.brokers == scot.brokers
    assert all(copy.neighbours(broker) == scot.neighbours(broker) for broker in scot.brokers)


@given(overlays())
def test_every_broker_is_found_by_its_name(scot: SCOT):
    assert all(scot.broker(str(broker)) == broker for broker in scot.brokers)
    assert all(scot.broker(broker.short) == broker for broker in scot.brokers)


@given(trees(vertices_min=2), st.data())
def test_any_edge_more_closes_a_cycle_or_is_doubled(tree: AcyclicFactor, data: st.DataObject):
    one, other = data.draw(st.permutations(tree.vertices))[:2]
    edge = (one, other)
    with pytest.raises((CycleFound, DoubledEdge)) as caught:
        AcyclicFactor(tree.vertices, [*tree.edges, edge])
    if isinstance(caught.value, DoubledEdge):
        assert other in tree.neighbours(one)
        return
    cycle = caught.value.cycle
    assert len(cycle) == len(set(cycle)) == tree.distance(one, other) + 1
    steps = {frozenset((cycle[place - 1], cycle[place])) for place in range(len(cycle))}
    assert frozenset(edge) in steps
    assert steps - {frozenset(edge)} <= set(map(frozenset, tree.edges))


@given(trees(vertices_min=2), st.data())
def test_any_edge_less_leaves_a_part_unreached(tree: AcyclicFactor, data: st.DataObject):
    cut = data.draw(st.sampled_from(tree.edges))
    rest = graph_of_tree(tree)
    rest.remove_edge(*cut)
    with pytest.raises(NotConnected) as caught:
        AcyclicFactor(tree.vertices, [edge for edge in tree.edges if edge != cut])
    reached = nx.node_connected_component(rest, caught.value.start)
    assert set(caught.value.unreached) == set(tree.vertices) - reached


@given(st.integers(1, 300), st.integers(1, 12), st.integers(1, 6))
def test_grown_overlay_is_the_smallest_that_suffices(brokers: int, clusters: int, fanout: int):
    scot = grow(brokers, clusters, fanout)
    assert len(scot.clusters) == clusters
    assert brokers <= len(scot.brokers) < brokers + clusters
    depth = scot.acyclic.distances(scot.regions[0])
    assert list(depth.values()) == sorted(depth.values())
    for region in scot.regions:
        children = [n for n in scot.acyclic.neighbours(region) if depth[n] > depth[region]]
        assert len(children) <= fanout


@given(trees())
def test_columns_hold_every_region_and_no_two_links_of_a_row_cross(tree: AcyclicFactor):
    order = column_order(tree)
    assert sorted(order) == sorted(tree.vertices)
    spans = [tuple(sorted((order.index(one), order.index(other)))) for one, other in tree.edges]
    for one, other in combinations(spans, 2):
        first, second = sorted((one, other))
        assert not first[0] < second[0] < first[1] < second[1]


@given(overlays(vertices_max=8, clusters_max=5))
def test_no_two_links_share_a_curve(scot: SCOT):
    layout = lay_out(scot)
    curves = list(layout.curves.values())
    assert len(set(curves)) == len(curves) == len(scot.acols) + len(scot.icols)
