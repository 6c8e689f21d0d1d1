"""The overlay of Figures 2 and 3: an H-graph and a triangle."""

from octopis.core.topology import from_catalogue, plan

SCOT_3 = from_catalogue("figure-3").scot


def test_factors_are_those_of_figure_2():
    assert set(map(frozenset, SCOT_3.acyclic.edges)) == set(
        map(frozenset, ["ab", "bc", "de", "ef", "be"])
    )
    assert (len(SCOT_3.acyclic.vertices), len(SCOT_3.acyclic.edges)) == (6, 5)
    assert (len(SCOT_3.connectivity.vertices), len(SCOT_3.connectivity.edges)) == (3, 3)


def test_18_brokers_15_acols_18_icols():
    assert (len(SCOT_3.brokers), len(SCOT_3.acols), len(SCOT_3.icols)) == (18, 15, 18)


def test_plan_gives_the_same_figures():
    figures = plan(SCOT_3)
    assert (figures.brokers, figures.acols, figures.icols) == (18, 15, 18)
    assert (figures.edge_brokers, figures.inner_brokers) == (12, 6)


def test_diameter_and_longest_path():
    assert (SCOT_3.diameter, SCOT_3.longest_path) == (3, 4)
