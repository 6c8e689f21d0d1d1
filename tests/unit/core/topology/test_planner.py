import pytest

from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.planner import grow, plan
from octopis.core.topology.scot import SCOT
from octopis.errors import InvalidConfiguration, InvalidTopology

SINGLE = AcyclicFactor.single("a")
PAIR = AcyclicFactor.from_edges([("a", "b")])
LINE = AcyclicFactor.from_edges([("a", "b"), ("b", "c")])


def test_plan_counts_what_the_overlay_has():
    figures = plan(SCOT(LINE, ConnectivityFactor.complete(2)))
    assert (figures.brokers, figures.regions, figures.clusters) == (6, 3, 2)
    assert (figures.edge_brokers, figures.inner_brokers) == (4, 2)
    assert (figures.acols, figures.icols) == (4, 3)
    assert (figures.diameter, figures.longest_path) == (2, 3)


def test_two_step_broadcast_reaches_every_broker_once():
    # 2 aCOLs of the host cluster and an iCOL from each of its 3 brokers.
    assert plan(SCOT(LINE, ConnectivityFactor.complete(2))).ims_two_step == 5


def test_flooding_uses_every_link_both_ways_but_for_first_arrivals():
    # Degrees 2 3 2 in either cluster, less the 5 links over which brokers heard it first.
    assert plan(SCOT(LINE, ConnectivityFactor.complete(2))).ims_flooding == 14 - 5


@pytest.mark.parametrize(
    ("tree", "clusters", "deaths"),
    [
        (SINGLE, 1, 0),
        (SINGLE, 4, 3),
        (PAIR, 1, 1),
        (PAIR, 2, 1),
        (LINE, 1, 0),
        (LINE, 2, 1),
        (LINE, 5, 4),
    ],
)
def test_tolerated_deaths(tree: AcyclicFactor, clusters: int, deaths: int):
    scot = SCOT(tree, ConnectivityFactor.complete(clusters))
    assert plan(scot).tolerated_deaths == deaths


@pytest.mark.parametrize(
    ("brokers_min", "clusters", "regions"),
    [(1, 1, 1), (10, 3, 4), (9, 3, 3), (1, 5, 1), (75, 5, 15)],
)
def test_grown_overlay_is_the_smallest_that_suffices(brokers_min: int, clusters: int, regions: int):
    scot = grow(brokers_min, clusters)
    assert (len(scot.regions), len(scot.clusters)) == (regions, clusters)


def test_grown_tree_is_filled_level_by_level():
    tree = grow(8, 1, fanout=2).acyclic
    assert [tree.distance("r001", region) for region in tree.vertices] == [0, 1, 1, 2, 2, 2, 2, 3]
    assert max(len(tree.neighbours(region)) for region in tree.vertices) == 3


def test_fanout_of_one_grows_a_line():
    assert grow(6, 1, fanout=1).diameter == 5


def test_grown_labels_sort_in_their_order():
    regions = grow(1_200, 1).regions
    assert regions[0] == "r0001"
    assert list(regions) == sorted(regions)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 3, 3), "brokers must be 1 or more, not 0"),
        ((-4, 3, 3), "brokers must be 1 or more, not -4"),
        ((9, 0, 3), "clusters must be 1 or more, not 0"),
        ((9, 3, 0), "fanout must be 1 or more, not 0"),
        ((10**12, 3, 3), "brokers must be 100,000 or fewer, not 1,000,000,000,000"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(numbers: tuple[int, int, int], message: str):
    with pytest.raises(InvalidConfiguration) as caught:
        grow(*numbers)
    assert str(caught.value) == message


def test_clusters_beyond_all_measure_are_refused():
    with pytest.raises(InvalidTopology, match="too large"):
        grow(1, 10**9)
