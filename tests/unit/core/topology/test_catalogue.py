import pytest

from octopis.core.topology.catalogue import catalogue_names, from_catalogue
from octopis.errors import InvalidConfiguration


def test_catalogue_has_the_overlays_of_the_paper():
    assert catalogue_names() == ("figure-3", "figure-7", "paper")


@pytest.mark.parametrize("name", catalogue_names())
def test_every_overlay_has_its_name_and_one_sentence(name: str):
    topology = from_catalogue(name)
    assert topology.name == name
    assert topology.description.endswith(".")
    assert topology.description.count(". ") == 0


def test_figure_7_is_a_line_of_three_regions_in_three_clusters():
    scot = from_catalogue("figure-7").scot
    assert scot.acyclic.edges == (("a", "b"), ("b", "c"))
    assert scot.clusters == (0, 1, 2)


def test_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(
        InvalidConfiguration, match="no topology 'figure3'; did you mean 'figure-3'"
    ):
        from_catalogue("figure3")


def test_name_like_no_other_is_refused_with_all_names():
    with pytest.raises(InvalidConfiguration, match="there are figure-3, figure-7, paper"):
        from_catalogue("zzz")
