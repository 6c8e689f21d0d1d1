from math import hypot

import pytest

from octopis.core.topology import from_catalogue
from octopis.explain.arrows import arrow_line, head, label_place, straight_line, without_head
from octopis.explain.layout import lay_out
from support.notation import broker

SCOT_3 = from_catalogue("figure-3").scot
LAYOUT = lay_out(SCOT_3, room=0.5)
ROW = LAYOUT.row_height


@pytest.mark.parametrize(
    ("source", "target"), [("b,0", "e,0"), ("e,0", "b,0"), ("a,0", "a,2"), ("a,2", "a,1")]
)
def test_arrow_leads_from_border_to_border(source: str, target: str):
    line = arrow_line(SCOT_3, LAYOUT, broker(source), broker(target))
    for point, end in ((line[0], source), (line[-1], target)):
        x, y = LAYOUT.positions[broker(end)]
        away = hypot(point[0] - x, point[1] - y)
        assert LAYOUT.broker_height / 2 <= away <= LAYOUT.broker_width / 2 + 0.1


def test_arrow_and_its_opposite_have_the_same_way():
    forth = arrow_line(SCOT_3, LAYOUT, broker("a,0"), broker("a,2"))
    back = arrow_line(SCOT_3, LAYOUT, broker("a,2"), broker("a,0"))
    assert forth == back[::-1]


def test_second_arrow_on_a_link_stands_aside():
    one = arrow_line(SCOT_3, LAYOUT, broker("a,0"), broker("b,0"))
    other = arrow_line(SCOT_3, LAYOUT, broker("a,0"), broker("b,0"), aside=0.1)
    assert {y for _, y in other} == {one[0][1] + 0.1}


def test_straight_link_is_straight_to_the_last_digit():
    line = arrow_line(SCOT_3, LAYOUT, broker("a,2"), broker("b,2"))
    assert len({y for _, y in line}) == 1


class TestLabels:
    def test_above_a_link_within_a_cluster(self):
        line = arrow_line(SCOT_3, LAYOUT, broker("a,1"), broker("b,1"))
        (_, y), across, along = label_place(line, 0.1, ROW)
        assert (y, across, along) == (line[0][1] + 0.1, "center", "bottom")

    def test_to_the_right_of_a_straight_link_between_clusters(self):
        line = arrow_line(SCOT_3, LAYOUT, broker("a,1"), broker("a,0"))
        (x, _), across, along = label_place(line, 0.1, ROW)
        assert (x, across, along) == (line[0][0] + 0.1, "left", "center")

    def test_outside_of_a_bow_and_between_two_rows(self):
        line = arrow_line(SCOT_3, LAYOUT, broker("a,0"), broker("a,2"))
        (x, y), across, _ = label_place(line, 0.1, ROW)
        assert across == "right"
        assert x < min(point[0] for point in line if abs(point[1] - y) < 0.01)
        assert y == pytest.approx(-ROW / 2, abs=0.15)


class TestHead:
    LINE = straight_line((0.0, 0.0), (1.0, 0.0))

    def test_triangle_ends_where_the_line_ends(self):
        assert head(self.LINE, 0.2, 0.1) == [(1.0, 0.0), (0.8, 0.05), (0.8, -0.05)]

    def test_shaft_ends_where_the_triangle_begins(self):
        assert without_head(self.LINE, 0.2)[-1][0] == pytest.approx(0.84, abs=0.02)

    def test_short_line_keeps_its_direction(self):
        tip, left, right = head(straight_line((0.0, 0.0), (0.0, 0.1)), 0.2, 0.1)
        assert tip == (0.0, 0.1)
        assert left[1] == right[1] == pytest.approx(-0.1)
