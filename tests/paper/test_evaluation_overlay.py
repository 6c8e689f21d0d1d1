"""The overlay S_e of the evaluation (section 7.1, Figure 8)."""

from time import process_time

from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor, from_catalogue, plan

S_E = from_catalogue("paper").scot
INNER = ("vi", "vii", "viii", "ix", "x")


def test_75_brokers_in_15_regions_and_5_clusters():
    assert (len(S_E.brokers), len(S_E.regions), len(S_E.clusters)) == (75, 15, 5)


def test_70_acols_and_150_icols():
    assert (len(S_E.acols), len(S_E.icols)) == (70, 150)


def test_25_inner_and_50_edge_brokers():
    inner = [broker for broker in S_E.brokers if S_E.is_inner(broker)]
    assert {broker.region for broker in inner} == set(INNER)
    assert (len(inner), sum(map(S_E.is_edge, S_E.brokers))) == (25, 50)


def test_each_broker_has_one_secondary_neighbour_in_each_other_cluster():
    for broker in S_E.brokers:
        clusters = {other.cluster for other in S_E.secondary_neighbours(broker)}
        assert clusters == set(S_E.clusters) - {broker.cluster}


def test_tree_is_that_of_figure_8():
    neighbours = {region: set(S_E.acyclic.neighbours(region)) for region in INNER}
    assert neighbours == {
        "vi": {"i", "xi", "vii"},
        "vii": {"ii", "xii", "vi", "viii"},
        "viii": {"iii", "xiii", "vii", "ix"},
        "ix": {"iv", "xiv", "viii", "x"},
        "x": {"v", "xv", "ix"},
    }


def test_diameter_6_and_longest_path_7():
    assert (S_E.diameter, S_E.longest_path) == (6, 7)
    longest = max(S_E.distance(one, other) for one in S_E.brokers for other in S_E.brokers)
    assert longest == 7


def test_subscription_costs_74_messages_and_366_by_flooding():
    figures = plan(S_E)
    assert (figures.ims_two_step, figures.ims_flooding) == (74, 366)


def test_any_4_brokers_may_die():
    assert plan(S_E).tolerated_deaths == 4


def test_overlay_is_built_in_10_ms():
    edges = S_E.acyclic.edges

    def build_ms() -> float:
        before = process_time()
        SCOT(AcyclicFactor.from_edges(edges), ConnectivityFactor.complete(5))
        return (process_time() - before) * 1000

    assert min(build_ms() for _ in range(5)) < 10
