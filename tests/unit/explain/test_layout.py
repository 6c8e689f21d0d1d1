from itertools import combinations, pairwise

import pytest

from octopis.core.model import BrokerId
from octopis.core.topology.catalogue import catalogue_names, from_catalogue
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.planner import grow
from octopis.core.topology.scot import SCOT
from octopis.errors import InvalidInput
from octopis.explain.layout import (
    Curve,
    PictureLayout,
    Point,
    arc_levels,
    bow_lanes,
    column_order,
    lay_out,
    shown_label,
    shown_region,
)

OVERLAYS = {name: from_catalogue(name).scot for name in catalogue_names()} | {
    "grown": grow(60, 4),
    "one-cluster": grow(13, 1),
    "one-region": SCOT(AcyclicFactor.single("a"), ConnectivityFactor.complete(6)),
}


def points_on(curve: Curve, steps: int = 25) -> list[Point]:
    """Return points along a chain of cubic Bezier pieces."""
    found = []
    for start in range(0, len(curve) - 1, 3):
        p, q, r, s = curve[start : start + 4]
        for step in range(steps + 1):
            t = step / steps
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
            x, y = (
                sum(w * point[axis] for w, point in zip(weights, (p, q, r, s), strict=True))
                for axis in (0, 1)
            )
            found.append((x, y))
    return found


def covers(layout: PictureLayout, broker: BrokerId, point: Point) -> bool:
    x, y = layout.positions[broker]
    return (
        abs(point[0] - x) < layout.broker_width / 2 and abs(point[1] - y) < layout.broker_height / 2
    )


@pytest.fixture(params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> tuple[SCOT, PictureLayout]:
    scot = OVERLAYS[request.param]
    return scot, lay_out(scot)


def test_regions_are_columns_and_clusters_are_rows(overlay: tuple[SCOT, PictureLayout]):
    scot, layout = overlay
    for region in scot.regions:
        assert len({layout.positions[broker][0] for broker in scot.region(region)}) == 1
    for cluster in scot.clusters:
        assert len({layout.positions[broker][1] for broker in scot.cluster(cluster)}) == 1
    assert len(set(layout.positions.values())) == len(scot.brokers)


def test_cluster_0_is_on_top(overlay: tuple[SCOT, PictureLayout]):
    scot, layout = overlay
    heights = [layout.positions[broker][1] for broker in scot.region(scot.regions[0])]
    assert all(upper > lower for upper, lower in pairwise(heights))


def test_every_link_has_a_curve_between_the_centres_of_its_brokers(
    overlay: tuple[SCOT, PictureLayout],
):
    scot, layout = overlay
    assert len(layout.curves) == len(scot.acols) + len(scot.icols)
    for source, target, _ in (*scot.acols, *scot.icols):
        curve = layout.curve(source, target)
        assert (curve[0], curve[-1]) == (layout.positions[source], layout.positions[target])
        assert layout.curve(target, source) == curve[::-1]
        assert len(curve) % 3 == 1


def test_no_link_runs_through_a_broker_that_it_does_not_join(overlay: tuple[SCOT, PictureLayout]):
    scot, layout = overlay
    for source, target, _ in (*scot.acols, *scot.icols):
        points = points_on(layout.curve(source, target))
        near = {*scot.cluster(source.cluster), *scot.region(source.region)} - {source, target}
        for broker in near:
            assert not any(covers(layout, broker, point) for point in points), (source, target)


def test_no_link_leaves_the_grid(overlay: tuple[SCOT, PictureLayout]):
    _, layout = overlay
    left, right, bottom, top = layout.borders
    for curve in layout.curves.values():
        assert all(left < x < right and bottom < y < top for x, y in points_on(curve))


def test_bows_stay_in_the_column_of_their_region(overlay: tuple[SCOT, PictureLayout]):
    scot, layout = overlay
    for source, target, _ in scot.icols:
        x = layout.positions[source][0]
        points = points_on(layout.curve(source, target))
        assert all(abs(point[0] - x) < layout.column_width / 2 for point in points)


def test_arcs_of_a_row_do_not_reach_the_row_above(overlay: tuple[SCOT, PictureLayout]):
    scot, layout = overlay
    for source, target, _ in scot.acols:
        y = layout.positions[source][1]
        highest = max(point[1] for point in points_on(layout.curve(source, target)))
        assert highest < y + layout.row_height - layout.broker_height / 2


def test_number_of_rows_is_the_number_of_clusters(overlay: tuple[SCOT, PictureLayout]):
    scot, layout = overlay
    assert layout.rows == len(scot.clusters)


def test_too_many_brokers_are_refused():
    with pytest.raises(InvalidInput, match="10,000 brokers are too many to draw; at most 1,000"):
        lay_out(grow(10_000, 20))


def test_picture_that_would_be_too_wide_is_refused():
    with pytest.raises(InvalidInput, match=r"900 regions x 1 clusters would be .* inches"):
        lay_out(grow(900, 1))


def test_very_long_region_is_cut_short():
    assert shown_region("abcdefghijkl") == "abcdefghijkl"
    assert shown_label(BrokerId("abcdefghijklm", 4)) == "abcdefghijk…,4"


def test_room_widens_the_gaps_and_leaves_the_brokers_as_they_are():
    scot = OVERLAYS["figure-7"]
    plain, roomy = lay_out(scot), lay_out(scot, room=0.5)
    assert roomy.column_width == pytest.approx(plain.column_width + 0.5)
    assert roomy.row_height == pytest.approx(plain.row_height + 0.5)
    assert (roomy.broker_width, roomy.broker_height) == (plain.broker_width, plain.broker_height)


class TestStrips:
    @pytest.fixture(params=[(200, 4), (200, 8), (300, 3), (120, 1)], ids=str)
    def wide(self, request: pytest.FixtureRequest) -> tuple[SCOT, PictureLayout]:
        scot = grow(*request.param)
        return scot, lay_out(scot, wraps=True)

    def test_wide_overlay_is_a_page_and_not_a_ribbon(self, wide: tuple[SCOT, PictureLayout]):
        _, layout = wide
        left, right, bottom, top = layout.borders
        assert len(layout.strips) > 1
        assert right - left <= max(26, 1.8 * (top - bottom))
        assert top - bottom <= 2 * (right - left)

    def test_strips_hold_all_regions_in_their_order(self, wide: tuple[SCOT, PictureLayout]):
        scot, layout = wide
        assert sum(layout.strips, ()) == layout.columns == column_order(scot.acyclic)
        assert len(set(layout.positions.values())) == len(scot.brokers)
        for strip, regions in enumerate(layout.strips):
            left, right, bottom, top = layout.strip_borders(strip)
            for broker in (each for region in regions for each in scot.region(region)):
                x, y = layout.positions[broker]
                assert left < x < right
                assert bottom < y < top

    def test_every_link_is_drawn_from_broker_to_broker(self, wide: tuple[SCOT, PictureLayout]):
        scot, layout = wide
        links = [(source, target) for source, target, _ in (*scot.acols, *scot.icols)]
        assert {*layout.curves, *layout.ties} == set(links)
        assert layout.ties
        for source, target in links:
            pieces = layout.pieces(source, target)
            ends = {pieces[0][0], pieces[-1][-1]}
            assert ends == {layout.positions[source], layout.positions[target]}

    def test_tie_goes_out_on_the_right_and_comes_in_on_the_left_at_one_height(
        self, wide: tuple[SCOT, PictureLayout]
    ):
        _, layout = wide
        strip_of = {region: n for n, regions in enumerate(layout.strips) for region in regions}
        for (source, target), pieces in layout.ties.items():
            first, last = sorted(strip_of[each.region] for each in (source, target))
            assert len(pieces) == last - first + 1
            heights = set()
            for strip, (piece, after) in enumerate(pairwise(pieces), first):
                assert piece[-1][0] > layout.strip_borders(strip)[1]
                assert after[0][0] < layout.strip_borders(strip + 1)[0]
                tops = [layout.strip_borders(each)[3] for each in (strip, strip + 1)]
                heights |= {
                    round(top - point[1], 6)
                    for top, point in zip(tops, (piece[-1], after[0]), strict=True)
                }
            assert len(heights) == 1, "so that the eye finds it again"

    def test_no_tie_runs_through_a_broker_that_it_does_not_join(
        self, wide: tuple[SCOT, PictureLayout]
    ):
        scot, layout = wide
        for (source, target), pieces in layout.ties.items():
            points = [point for piece in pieces for point in points_on(piece)]
            for broker in {*scot.cluster(source.cluster)} - {source, target}:
                assert not any(covers(layout, broker, point) for point in points)

    @pytest.mark.parametrize("name", catalogue_names())
    def test_overlay_that_fits_a_page_is_not_wrapped(self, name: str):
        assert lay_out(OVERLAYS[name], wraps=True) == lay_out(OVERLAYS[name])


class TestColumnOrder:
    def test_figure_3_has_the_columns_of_the_paper(self):
        assert column_order(from_catalogue("figure-3").scot.acyclic) == tuple("abcdef")

    def test_spine_vertices_of_the_evaluation_overlay_stand_between_their_leaves(self):
        order = " ".join(column_order(from_catalogue("paper").scot.acyclic))
        assert order == "i vi xi ii vii xii iii viii xiii iv ix xiv v x xv"

    def test_line_stays_a_line_whatever_the_order_of_its_vertices(self):
        line = AcyclicFactor("dbeac", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
        assert "".join(column_order(line)) in {"abcde", "edcba"}

    def test_single_vertex(self):
        assert column_order(AcyclicFactor.single("a")) == ("a",)

    def test_star_stands_amid_its_leaves(self):
        star = AcyclicFactor.from_edges([("m", leaf) for leaf in "abcd"])
        assert "".join(column_order(star)) == "abmcd"


class TestLanes:
    def test_neighbouring_places_are_joined_straight(self):
        assert arc_levels([(0, 1), (1, 2)]) == {(0, 1): 0, (1, 2): 0}

    def test_arc_passes_over_the_arcs_that_it_spans(self):
        assert arc_levels([(0, 5), (1, 2), (2, 4)]) == {(1, 2): 0, (2, 4): 1, (0, 5): 2}

    def test_arcs_side_by_side_are_equally_high(self):
        assert arc_levels([(0, 3), (3, 6)]) == {(0, 3): 1, (3, 6): 1}

    def test_one_place_has_no_lanes(self):
        assert bow_lanes(1) == {}

    def test_three_places_bow_to_the_left_as_in_figure_3(self):
        assert bow_lanes(3) == {(0, 1): 0, (1, 2): 0, (0, 2): -1}

    @pytest.mark.parametrize("places", range(2, 12))
    def test_every_pair_has_a_lane_and_only_neighbours_are_straight(self, places: int):
        lanes = bow_lanes(places)
        assert set(lanes) == set(combinations(range(places), 2))
        assert all((lane == 0) == (end - start == 1) for (start, end), lane in lanes.items())

    @pytest.mark.parametrize("places", range(2, 12))
    def test_links_that_pass_the_same_place_never_share_a_lane(self, places: int):
        bows = [(span, lane) for span, lane in bow_lanes(places).items() if lane]
        for (one, lane), (other, other_lane) in combinations(bows, 2):
            overlap = one[0] < other[1] and other[0] < one[1]
            assert not (overlap and lane == other_lane)
