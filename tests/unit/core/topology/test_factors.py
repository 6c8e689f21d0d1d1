import pickle

import pytest

from octopis.core.topology.factors import (
    AcyclicFactor,
    ConnectivityFactor,
    distances_from,
    find_cycle,
)
from octopis.errors import (
    AcyclicPropertyError,
    AmbiguousLabel,
    ConnectivityPropertyError,
    CycleFound,
    DoubledEdge,
    EmptyFactor,
    IndexPropertyError,
    NotConnected,
    SelfLoop,
    UnknownVertex,
)

H_GRAPH = AcyclicFactor.from_edges([("a", "b"), ("b", "c"), ("d", "e"), ("e", "f"), ("b", "e")])


class TestAcyclicFactor:
    def test_vertices_keep_the_order_in_which_they_are_given(self):
        assert AcyclicFactor("cab", [("a", "b"), ("b", "c")]).vertices == ("c", "a", "b")

    def test_vertices_from_edges_come_in_order_of_first_appearance(self):
        assert AcyclicFactor.from_edges([("c", "a"), ("a", "b")]).vertices == ("c", "a", "b")

    def test_equal_trees_are_equal_however_their_edges_are_written(self):
        one = AcyclicFactor("abc", [("a", "b"), ("b", "c")])
        other = AcyclicFactor("abc", [("c", "b"), ("b", "a")])
        assert one == other
        assert hash(one) == hash(other)

    def test_trees_with_other_edges_differ(self):
        assert AcyclicFactor("abc", ["ab", "bc"]) != AcyclicFactor("abc", ["ab", "ac"])

    def test_single_vertex_is_a_tree(self):
        tree = AcyclicFactor.single("a")
        assert (tree.vertices, tree.edges, tree.diameter) == (("a",), (), 0)
        assert tree.neighbours("a") == ()
        assert tree.distance("a", "a") == 0

    def test_neighbours_and_degree(self):
        assert H_GRAPH.neighbours("b") == ("a", "c", "e")
        assert len(H_GRAPH.neighbours("b")) == 3
        assert len(H_GRAPH.neighbours("f")) == 1

    def test_distance_and_diameter(self):
        assert H_GRAPH.distance("a", "f") == 3
        assert H_GRAPH.distance("f", "a") == 3
        assert H_GRAPH.diameter == 3

    def test_distances_are_computed_for_asked_sources_alone(self):
        tree = AcyclicFactor.from_edges([("a", "b"), ("b", "c")])
        tree.distance("b", "c")
        assert set(tree._distances) == {"b"}

    def test_pickles_without_what_can_be_computed_again(self):
        line = AcyclicFactor.from_edges([(f"v{n}", f"v{n + 1}") for n in range(100)])
        before = pickle.dumps(line)
        assert line.diameter == 100
        assert pickle.dumps(line) == before
        assert pickle.loads(before) == line  # noqa: S301 - our own bytes

    def test_no_vertices_are_refused(self):
        with pytest.raises(EmptyFactor, match="the acyclic factor has no vertices") as caught:
            AcyclicFactor.from_edges([])
        assert caught.value.factor == "acyclic factor"

    def test_self_loop_is_refused(self):
        with pytest.raises(
            SelfLoop, match="acyclic factor has an edge from 'b' to itself"
        ) as caught:
            AcyclicFactor.from_edges([("a", "b"), ("b", "b")])
        assert caught.value.vertex == "b"

    @pytest.mark.parametrize("again", [("a", "b"), ("b", "a")])
    def test_doubled_edge_is_refused_in_either_direction(self, again: tuple[str, str]):
        with pytest.raises(DoubledEdge, match="twice: keep one") as caught:
            AcyclicFactor.from_edges([("a", "b"), ("b", "c"), again])
        assert caught.value.edge == again

    def test_edge_to_an_unknown_vertex_is_refused_with_a_suggestion(self):
        with pytest.raises(UnknownVertex) as caught:
            AcyclicFactor(["north", "south"], [("north", "sooth")])
        assert caught.value.vertex == "sooth"
        assert str(caught.value) == (
            "the edge 'north' - 'sooth' of the acyclic factor names 'sooth', "
            "which is not a vertex; did you mean 'south'?"
        )

    def test_cycle_is_refused_and_printed(self):
        with pytest.raises(CycleFound, match="has the cycle b - c - d - b; cut one edge") as caught:
            AcyclicFactor.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")])
        assert caught.value.cycle == ("b", "c", "d")
        assert isinstance(caught.value, AcyclicPropertyError)

    def test_unconnected_tree_is_refused(self):
        with pytest.raises(NotConnected, match="no path leads from 'a' to 'c', 'd'") as caught:
            AcyclicFactor.from_edges([("a", "b"), ("c", "d")])
        assert (caught.value.start, caught.value.unreached) == ("a", ("c", "d"))
        assert isinstance(caught.value, AcyclicPropertyError)

    def test_vertex_without_edge_is_not_connected(self):
        with pytest.raises(NotConnected) as caught:
            AcyclicFactor("abc", [("a", "b")])
        assert caught.value.unreached == ("c",)

    def test_cycle_is_named_before_a_missing_connection(self):
        with pytest.raises(CycleFound):
            AcyclicFactor("abcx", [("a", "b"), ("b", "c"), ("c", "a")])

    @pytest.mark.parametrize("label", ["", " a", "a ", "a,b", "a(b", "b)", "7", "a\nb"])
    def test_ambiguous_label_is_refused(self, label: str):
        with pytest.raises(AmbiguousLabel, match=r"ambiguous in B\(region, cluster\)") as caught:
            AcyclicFactor.from_edges([("x", label)])
        assert caught.value.label == label

    def test_doubled_vertex_is_refused(self):
        with pytest.raises(AmbiguousLabel, match=r"'a' .* stands twice") as caught:
            AcyclicFactor("aba", [("a", "b")])
        assert caught.value.label == "a"

    def test_label_that_is_no_text_is_refused(self):
        with pytest.raises(AmbiguousLabel, match="a label is text, not int") as caught:
            AcyclicFactor.single(5)  # type: ignore[arg-type]
        assert caught.value.label == 5

    def test_line_of_thousands_needs_no_recursion(self):
        line = AcyclicFactor.from_edges([(f"v{n}", f"v{n + 1}") for n in range(5_000)])
        assert line.diameter == 5_000


class TestConnectivityFactor:
    def test_complete_graph(self):
        triangle = ConnectivityFactor.complete(3)
        assert tuple(triangle.vertices) == (0, 1, 2)
        assert triangle.edges == ((0, 1), (0, 2), (1, 2))
        assert triangle.size == 3

    def test_single_cluster(self):
        assert ConnectivityFactor.complete(1).edges == ()

    def test_written_in_full_is_the_same_graph(self):
        written = ConnectivityFactor.from_edges([2, 0, 1], [(0, 1), (2, 0), (1, 2)])
        assert written == ConnectivityFactor.complete(3)

    @pytest.mark.parametrize("order", [0, -1])
    def test_no_clusters_are_refused(self, order: int):
        with pytest.raises(EmptyFactor, match="the connectivity factor has no vertices") as caught:
            ConnectivityFactor.complete(order)
        assert caught.value.factor == "connectivity factor"

    def test_no_written_vertices_are_refused(self):
        with pytest.raises(EmptyFactor):
            ConnectivityFactor.from_edges([], [])

    @pytest.mark.parametrize("order", [2.0, "3", True, None])
    def test_number_of_clusters_must_be_an_integer(self, order: object):
        with pytest.raises(IndexPropertyError, match="must be an integer") as caught:
            ConnectivityFactor.complete(order)  # type: ignore[arg-type]
        assert caught.value.index == order

    @pytest.mark.parametrize("index", [1.0, "1", True, None])
    def test_index_that_is_no_integer_is_refused(self, index: object):
        with pytest.raises(IndexPropertyError, match="must be integers, but one is") as caught:
            ConnectivityFactor.from_edges([0, index], [(0, 1)])  # type: ignore[list-item]
        assert caught.value.index == index

    def test_edge_end_that_is_no_integer_is_refused(self):
        with pytest.raises(IndexPropertyError) as caught:
            ConnectivityFactor.from_edges([0, 1], [(0, 1.0)])  # type: ignore[list-item]
        assert caught.value.index == 1.0

    @pytest.mark.parametrize(
        ("vertices", "missing"), [([0, 2], 1), ([1, 2, 3], 0), ([-1, 0, 1], 2), ([0, 1, 3, 5], 2)]
    )
    def test_gap_is_refused(self, vertices: list[int], missing: int):
        with pytest.raises(IndexPropertyError, match=f"but {missing} is missing") as caught:
            ConnectivityFactor.from_edges(vertices, [])
        assert caught.value.index == missing

    def test_doubled_index_is_refused(self):
        with pytest.raises(IndexPropertyError, match="index 1 stands twice") as caught:
            ConnectivityFactor.from_edges([0, 1, 1], [])
        assert caught.value.index == 1

    def test_missing_edge_is_refused(self):
        with pytest.raises(ConnectivityPropertyError, match=r"has no edge 0 - 2$") as caught:
            ConnectivityFactor.from_edges([0, 1, 2], [(0, 1), (1, 2)])
        assert (caught.value.edge, caught.value.missing) == ((0, 2), 1)

    def test_missing_edges_are_counted(self):
        with pytest.raises(ConnectivityPropertyError, match="5 edges are missing in all") as caught:
            ConnectivityFactor.from_edges([0, 1, 2, 3], [(0, 1)])
        assert caught.value.edge == (0, 2)

    def test_self_loop_is_refused(self):
        with pytest.raises(SelfLoop, match="connectivity factor has an edge from 1") as caught:
            ConnectivityFactor.from_edges([0, 1], [(0, 1), (1, 1)])
        assert caught.value.vertex == 1

    def test_doubled_edge_is_refused(self):
        with pytest.raises(DoubledEdge, match="connectivity factor has the edge 1 - 0") as caught:
            ConnectivityFactor.from_edges([0, 1], [(0, 1), (1, 0)])
        assert caught.value.edge == (1, 0)

    def test_edge_to_an_unknown_index_is_refused(self):
        with pytest.raises(UnknownVertex, match="names 7, which is not a vertex") as caught:
            ConnectivityFactor.from_edges([0, 1], [(0, 7)])
        assert caught.value.vertex == 7

    def test_pickles(self):
        factor = ConnectivityFactor.complete(4)
        assert pickle.loads(pickle.dumps(factor)) == factor  # noqa: S301 - our own bytes


PATH = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
TRIANGLE_WITH_TAIL = {"t": ["a"], "a": ["t", "b", "c"], "b": ["a", "c"], "c": ["a", "b"]}


class TestWalks:
    def test_distances_count_edges_from_the_source(self):
        assert distances_from("a", PATH) == {"a": 0, "b": 1, "c": 2}

    def test_distances_leave_out_what_cannot_be_reached(self):
        assert distances_from("a", {"a": [], "b": []}) == {"a": 0}

    def test_tree_has_no_cycle(self):
        assert find_cycle(PATH) is None

    def test_cycle_leaves_out_the_tail_that_leads_to_it(self):
        assert find_cycle(TRIANGLE_WITH_TAIL) == ("a", "b", "c")

    def test_cycle_is_found_in_a_part_that_the_first_vertex_does_not_reach(self):
        assert find_cycle({"x": [], **TRIANGLE_WITH_TAIL}) == ("a", "b", "c")

    def test_long_cycle_is_given_in_walking_order(self):
        ring = {"a": ["b", "e"], "b": ["a", "c"], "c": ["b", "d"], "d": ["c", "e"], "e": ["d", "a"]}
        cycle = find_cycle(ring)
        assert cycle is not None
        assert sorted(cycle) == list("abcde")
        assert all(cycle[place] in ring[cycle[place - 1]] for place in range(5))
