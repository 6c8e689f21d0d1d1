from octopis.core.topology.catalogue import from_catalogue
from octopis.core.topology.factors import AcyclicFactor
from octopis.explain.layout import column_order


def test_figure_3_has_the_columns_of_the_paper():
    assert column_order(from_catalogue("figure-3").scot.acyclic) == tuple("abcdef")


def test_spine_vertices_of_the_evaluation_overlay_stand_between_their_leaves():
    order = " ".join(column_order(from_catalogue("paper").scot.acyclic))
    assert order == "i vi xi ii vii xii iii viii xiii iv ix xiv v x xv"


def test_line_stays_a_line_whatever_the_order_of_its_vertices():
    line = AcyclicFactor("dbeac", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
    assert "".join(column_order(line)) in {"abcde", "edcba"}


def test_single_vertex():
    assert column_order(AcyclicFactor.single("a")) == ("a",)


def test_star_stands_amid_its_leaves():
    star = AcyclicFactor.from_edges([("m", leaf) for leaf in "abcd"])
    assert "".join(column_order(star)) == "abmcd"
