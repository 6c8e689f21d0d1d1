from itertools import combinations

import pytest

from octopis.explain.layout import arc_levels, bow_lanes


def test_neighbouring_places_are_joined_straight():
    assert arc_levels([(0, 1), (1, 2)]) == {(0, 1): 0, (1, 2): 0}


def test_arc_passes_over_the_arcs_that_it_spans():
    assert arc_levels([(0, 5), (1, 2), (2, 4)]) == {(1, 2): 0, (2, 4): 1, (0, 5): 2}


def test_arcs_side_by_side_are_equally_high():
    assert arc_levels([(0, 3), (3, 6)]) == {(0, 3): 1, (3, 6): 1}


def test_one_place_has_no_lanes():
    assert bow_lanes(1) == {}


def test_three_places_bow_to_the_left_as_in_figure_3():
    assert bow_lanes(3) == {(0, 1): 0, (1, 2): 0, (0, 2): -1}


@pytest.mark.parametrize("places", range(2, 12))
def test_every_pair_has_a_lane_and_only_neighbours_are_straight(places: int):
    lanes = bow_lanes(places)
    assert set(lanes) == set(combinations(range(places), 2))
    assert all((lane == 0) == (end - start == 1) for (start, end), lane in lanes.items())


@pytest.mark.parametrize("places", range(2, 12))
def test_links_that_pass_the_same_place_never_share_a_lane(places: int):
    bows = [(span, lane) for span, lane in bow_lanes(places).items() if lane]
    for (one, lane), (other, other_lane) in combinations(bows, 2):
        overlap = one[0] < other[1] and other[0] < one[1]
        assert not (overlap and lane == other_lane)
