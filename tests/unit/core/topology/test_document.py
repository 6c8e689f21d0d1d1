import pytest

from octopis.core.topology.catalogue import NamedTopology, catalogue_names, from_catalogue
from octopis.core.topology.document import format_topology, parse_topology
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.scot import SCOT
from octopis.errors import (
    AmbiguousLabel,
    ConnectivityPropertyError,
    CycleFound,
    EmptyFactor,
    IndexPropertyError,
    InvalidConfiguration,
    UnknownVertex,
)

HEADING = '[topology]\nname = "line"\n'
TREE = '[acyclic_factor]\nedges = [["a", "b"], ["b", "c"]]\n'
CLUSTERS = "[connectivity_factor]\nclusters = 2\n"


def parse(text: str) -> NamedTopology:
    return parse_topology(text, "line.toml")


def refusal(text: str) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        parse(text)
    return str(caught.value)


def test_edges_and_clusters_make_an_overlay():
    topology = parse(HEADING + TREE + CLUSTERS)
    assert (topology.name, topology.description) == ("line", "")
    assert topology.scot == SCOT(
        AcyclicFactor("abc", [("a", "b"), ("b", "c")]), ConnectivityFactor.complete(2)
    )


def test_vertices_set_the_order_of_the_regions():
    topology = parse(HEADING + TREE + 'vertices = ["c", "b", "a"]\n' + CLUSTERS)
    assert topology.scot.regions == ("c", "b", "a")


def test_single_vertex_needs_no_edges():
    topology = parse(HEADING + '[acyclic_factor]\nvertices = ["a"]\n' + CLUSTERS)
    assert topology.scot.regions == ("a",)


def test_connectivity_factor_may_be_written_in_full():
    full = "[connectivity_factor]\nvertices = [0, 1, 2]\nedges = [[0, 1], [0, 2], [1, 2]]\n"
    assert parse(HEADING + TREE + full).scot.clusters == (0, 1, 2)


def test_catalogue_entry_stands_for_both_factors():
    topology = parse('[topology]\ncatalogue = "figure-3"\n')
    assert topology == from_catalogue("figure-3")


def test_catalogue_entry_may_get_another_name():
    topology = parse('[topology]\nname = "mine"\ncatalogue = "figure-3"\ndescription = "My own."\n')
    assert (topology.name, topology.description) == ("mine", "My own.")
    assert topology.scot == from_catalogue("figure-3").scot


@pytest.mark.parametrize(
    ("factor", "name"), [(TREE, "acyclic_factor"), (CLUSTERS, "connectivity_factor")]
)
def test_catalogue_entry_and_factors_exclude_each_other(factor: str, name: str):
    message = refusal('[topology]\ncatalogue = "paper"\n' + factor)
    assert message == f"line.toml: topology.catalogue and [{name}] exclude each other; remove one"


def test_unknown_catalogue_entry_is_refused_with_its_place():
    message = refusal('[topology]\ncatalogue = "papper"\n')
    assert message.startswith("line.toml: topology.catalogue: ")
    assert "did you mean 'paper'?" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TREE + CLUSTERS, "object missing required field 'topology'"),
        ("[topology]\n" + TREE + CLUSTERS, "topology.name is missing or empty"),
        ('[topology]\nname = ""\n' + TREE + CLUSTERS, "topology.name is missing or empty"),
        (HEADING + CLUSTERS, "acyclic_factor.edges is missing"),
        (HEADING + TREE, "connectivity_factor.clusters is missing (or its vertices and edges)"),
        (
            HEADING + TREE + CLUSTERS + "vertices = [0, 1]\n",
            "connectivity_factor.clusters and its vertices or edges exclude each other; remove one",
        ),
        (
            HEADING + TREE + "[connectivity_factor]\nclustres = 2\n",
            "unknown key 'connectivity_factor.clustres'; did you mean 'clusters'?",
        ),
        (
            HEADING + '[acyclic_factor]\nedges = [["a", "b"], ["b"]]\n' + CLUSTERS,
            "acyclic_factor.edges[1]: expected 'array' of length 2, got 1",
        ),
        (
            HEADING + '[acyclic_factor]\nedges = [["a", 1]]\n' + CLUSTERS,
            "acyclic_factor.edges[0][1]: expected 'str', got 'int'",
        ),
        (
            HEADING + TREE + "[connectivity_factor]\nclusters = 2.0\n",
            "connectivity_factor.clusters: expected 'int', got 'float'",
        ),
    ],
)
def test_document_that_makes_no_sense_is_refused_with_its_place(text: str, message: str):
    assert refusal(text) == f"line.toml: {message}"


def test_bad_syntax_is_refused_with_its_line():
    assert "at line 3, column " in refusal(HEADING + "[acyclic_factor\n")


@pytest.mark.parametrize(
    ("factors", "error"),
    [
        ('[acyclic_factor]\nedges = [["a", "b"], ["b", "c"], ["c", "a"]]\n' + CLUSTERS, CycleFound),
        ("[acyclic_factor]\nedges = []\n" + CLUSTERS, EmptyFactor),
        ('[acyclic_factor]\nedges = [["a", "1"]]\n' + CLUSTERS, AmbiguousLabel),
        (TREE + 'vertices = ["a", "b"]\n' + CLUSTERS, UnknownVertex),
        (TREE + "[connectivity_factor]\nclusters = 0\n", EmptyFactor),
        (TREE + "[connectivity_factor]\nvertices = [0, 1.5]\n", IndexPropertyError),
        (TREE + "[connectivity_factor]\nvertices = [0, 1]\n", ConnectivityPropertyError),
    ],
)
def test_factors_that_make_no_overlay_raise_the_error_of_the_property(
    factors: str, error: type[Exception]
):
    with pytest.raises(error):
        parse(HEADING + factors)


@pytest.mark.parametrize("name", catalogue_names())
def test_formatted_topology_reads_back(name: str):
    topology = from_catalogue(name)
    assert parse(format_topology(topology)) == topology
