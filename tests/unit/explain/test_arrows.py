from math import hypot

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, PathPatch
from matplotlib.path import Path

from octopis.core.topology import LinkKind, from_catalogue
from octopis.explain.arrows import (
    label_place,
    link_path,
    paint_copy,
    paint_overloaded,
    points_along,
    straight_path,
)
from octopis.explain.layout import lay_out
from support.notation import broker

SCOT_3 = from_catalogue("figure-3").scot
LAYOUT = lay_out(SCOT_3, room=0.5)
ROW = LAYOUT.row_height
DISTANCE = 0.15


def path_between(source: str, target: str, aside: float = 0.0) -> Path:
    return link_path(SCOT_3, LAYOUT, broker(source), broker(target), aside)


@pytest.mark.parametrize(
    ("source", "target"), [("b,0", "e,0"), ("e,0", "b,0"), ("a,0", "a,2"), ("a,2", "a,1")]
)
def test_arrow_leads_from_border_to_border(source: str, target: str):
    path = path_between(source, target)
    for point, end in ((path.vertices[0], source), (path.vertices[-1], target)):
        x, y = LAYOUT.positions[broker(end)]
        away = hypot(point[0] - x, point[1] - y)
        assert LAYOUT.broker_height / 2 <= away <= LAYOUT.broker_width / 2 + 0.1


def test_arrow_and_its_opposite_have_the_same_way():
    forth, back = path_between("a,0", "a,2"), path_between("a,2", "a,0")
    assert forth.vertices == pytest.approx(back.vertices[::-1], abs=0.002)


@pytest.mark.parametrize("aside", [0.1, 0.5])
def test_second_arrow_on_a_link_stands_aside(aside: float):
    one, other = path_between("a,0", "b,0"), path_between("a,0", "b,0", aside)
    assert {y for _, y in other.vertices} == {one.vertices[0][1] + aside}
    back = path_between("b,0", "a,0", aside)
    assert {y for _, y in back.vertices} == {one.vertices[0][1] - aside}


def test_straight_link_is_straight_to_the_last_digit():
    assert len({y for _, y in path_between("a,2", "b,2").vertices}) == 1


class TestLabels:
    def test_above_a_link_within_a_cluster(self):
        path = path_between("a,1", "b,1")
        (_, y), across, along = label_place(path, ROW)
        assert y == pytest.approx(path.vertices[0][1] + DISTANCE)
        assert (across, along) == ("center", "bottom")

    def test_above_the_highest_part_of_an_arc(self):
        path = path_between("b,1", "e,1")
        (x, y), _, _ = label_place(path, ROW)
        assert x == pytest.approx((path.vertices[0][0] + path.vertices[-1][0]) / 2)
        assert y == pytest.approx(path.vertices[:, 1].max() + DISTANCE)

    def test_to_the_right_of_a_straight_link_between_clusters(self):
        path = path_between("a,1", "a,0")
        (x, _), across, along = label_place(path, ROW)
        assert (x, across, along) == (path.vertices[0][0] + DISTANCE, "left", "center")

    def test_outside_of_a_bow_and_between_two_rows(self):
        path = path_between("a,0", "a,2")
        (x, y), across, _ = label_place(path, ROW)
        assert across == "right"
        assert path.vertices[:, 0].min() - DISTANCE <= x < path.vertices[0][0] - DISTANCE
        assert y == pytest.approx(-ROW / 2, abs=0.15)


def test_points_along_a_path_are_equally_far_from_each_other():
    path = path_between("b,0", "e,0")
    points = points_along(path)
    assert points[[0, -1]] == pytest.approx(np.asarray(path.vertices)[[0, -1]], abs=1e-6)
    steps = np.hypot(*np.diff(points, axis=0).T)
    assert steps == pytest.approx(np.full(len(steps), steps.mean()), rel=0.02)


class TestHead:
    @pytest.fixture
    def axes(self) -> Axes:
        axes = Figure(figsize=(2, 1), dpi=72).add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0, 2), ylim=(-0.5, 0.5))  # so one unit is one inch
        return axes

    def test_triangle_ends_where_the_line_ends(self, axes: Axes):
        paint_copy(axes, straight_path((0.0, 0.0), (1.0, 0.0)), LinkKind.ACOL, carrying=False)
        shaft, head = axes.patches
        assert isinstance(head, FancyArrowPatch)
        corners = head.get_path().vertices[2:5]
        assert corners == pytest.approx(np.array([(0.83, 0.075), (1, 0), (0.83, -0.075)]), abs=1e-6)
        assert isinstance(shaft, PathPatch)
        assert 0.83 < shaft.get_path().vertices[-1][0] < 0.9

    def test_head_of_an_overloaded_link_is_broader(self, axes: Axes):
        paint_overloaded(axes, straight_path((0.0, 0.0), (1.0, 0.0)))
        corners = axes.patches[1].get_path().vertices[2:5]
        assert corners == pytest.approx(np.array([(0.7, 0.135), (1, 0), (0.7, -0.135)]), abs=1e-6)

    def test_head_points_where_its_line_goes(self, axes: Axes):
        paint_copy(axes, straight_path((1.0, 0.4), (1.0, -0.4)), LinkKind.ICOL, carrying=True)
        one, tip, other = axes.patches[1].get_path().vertices[2:5]
        assert tip == pytest.approx((1.0, -0.4))
        assert one[1] == other[1] == pytest.approx(-0.23)
