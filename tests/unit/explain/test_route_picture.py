from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import PathPatch

from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.explain.arrows import CARRYING, CROSS, OVERLOADED, PLAIN
from octopis.explain.explainer import explain
from octopis.explain.explanation import RouteExplanation
from octopis.explain.overlay_picture import Canvas
from octopis.explain.pictures import draw_canvas
from octopis.explain.question import AskedSubscriber, Question
from octopis.explain.route_picture import client_handles, paint_clients, paint_route
from support.notation import broker, links, subscriber

SCOT_7 = from_catalogue("figure-7").scot
CASE_1 = Question(
    SCOT_7,
    broker("b,2"),
    Notification({}),
    tuple(
        subscriber(name, at)
        for name, at in (("S1", "c,0"), ("S2", "c,1"), ("S3", "a,2"), ("S4", "c,2"))
    ),
    frozenset(links("b,2>b,0")),
)


def painted(algorithm: Algorithm, question: Question = CASE_1) -> Canvas:
    canvas = draw_canvas(question.scot, "title", room=0.5)
    paint_route(canvas, explain(question, algorithm))
    return canvas


@pytest.fixture(scope="module")
def dnr() -> Canvas:
    return painted(Algorithm.DNR)


def shafts(canvas: Canvas, colour: str) -> list[PathPatch]:
    return [
        patch
        for patch in canvas.axes.patches
        if isinstance(patch, PathPatch) and patch.get_edgecolor() == to_rgba(colour)
    ]


def is_dashed(patch: PathPatch) -> bool:
    return patch.get_linestyle() not in {"-", "solid"}


def legend_of(canvas: Canvas) -> list[str]:
    legend = canvas.axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_one_arrow_for_each_copy(dnr: Canvas):
    assert (len(shafts(dnr, PLAIN)), len(shafts(dnr, CARRYING))) == (5, 1)


def test_copies_on_icols_are_dashed_and_on_acols_solid(dnr: Canvas):
    dashed = [shaft for shaft in shafts(dnr, PLAIN) if is_dashed(shaft)]
    assert len(dashed) == 1
    assert is_dashed(shafts(dnr, CARRYING)[0])


def test_overloaded_link_lies_under_the_links(dnr: Canvas):
    (band,) = shafts(dnr, OVERLOADED)
    others = [patch for patch in dnr.axes.patches if isinstance(patch, PathPatch)]
    assert all(band.get_zorder() < other.get_zorder() for other in others if other is not band)
    assert band.get_linewidth() > 2 * shafts(dnr, PLAIN)[0].get_linewidth()


def test_bits_stand_beside_the_copy_that_carries_them(dnr: Canvas):
    bits = [text for text in dnr.axes.texts if text.get_text() == "001"]
    assert len(bits) == 1
    (x, y), top = bits[0].get_position(), dnr.layout.positions[broker("b,1")]
    assert x > top[0]
    assert dnr.layout.positions[broker("b,2")][1] < y < top[1]


def test_legend_has_what_the_picture_has_and_nothing_else(dnr: Canvas):
    assert "a copy that carries CBV_p, with its bits" in legend_of(dnr)
    calm = Question(CASE_1.scot, CASE_1.publisher, CASE_1.notification, CASE_1.subscribers)
    assert legend_of(painted(Algorithm.SNR, calm)) == [
        "a copy on an aCOL",
        "a copy on an iCOL",
        "P: the publisher",
        "a subscriber, reached",
    ]


def test_bids_are_shown_or_counted():
    many = Question(
        CASE_1.scot,
        CASE_1.publisher,
        CASE_1.notification,
        tuple(subscriber(each.short, each.short) for each in CASE_1.scot.brokers),
    )
    shown = [text.get_text() for text in painted(Algorithm.BID, many).axes.texts]
    assert "3 BIDs" in shown
    canvas = painted(Algorithm.BID)
    assert "a copy with BIDs on an iCOL" in legend_of(canvas)
    labels = [text for text in canvas.axes.texts if text.get_fontweight() == "bold"]
    assert [text.get_text() for text in labels].count("c,0") == 2


FAULTS = Question(
    SCOT_7,
    broker("b,2"),
    Notification({}),
    tuple(subscriber(name, at) for name, at in (("S1", "c,0"), ("S2", "c,1"), ("S3", "a,2"))),
    dead=frozenset([broker("c,1")]),
    cut=frozenset(links("b,2>a,2")),
)


@pytest.fixture(scope="module")
def snr() -> Canvas:
    return painted(Algorithm.SNR, FAULTS)


@pytest.fixture(scope="module")
def tnr() -> Canvas:
    return painted(Algorithm.TNR, FAULTS)


class TestFaults:
    def crosses(self, canvas: Canvas) -> list[tuple[float, float]]:
        """Return the middles of all crosses, each of which has two lines."""
        lines = [line for line in canvas.axes.lines if line.get_color() == CROSS]
        return [tuple(np.mean(line.get_xydata(), axis=0)) for line in lines[::2]]

    def test_dead_broker_is_crossed_out(self, tnr: Canvas):
        assert self.crosses(tnr) == [pytest.approx(tnr.layout.positions[broker("c,1")])]

    def test_cut_link_has_a_gap_and_links_of_the_dead_are_faint(self, tnr: Canvas):
        calm = painted(Algorithm.TNR, replace(FAULTS, dead=frozenset(), cut=frozenset()))
        looks = {
            link: (patch.get_edgecolor(), len(patch.get_path().to_polygons(closed_only=False)))
            for link, patch in tnr.links.items()
        }
        before = {
            link: (patch.get_edgecolor(), len(patch.get_path().to_polygons(closed_only=False)))
            for link, patch in calm.links.items()
        }
        changed = {link for link in looks if looks[link] != before[link]}
        assert changed == {frozenset(link) for link in FAULTS.down}
        gaps = [link for link, (_, pieces) in looks.items() if pieces > 1]
        assert gaps == [frozenset((broker("a,2"), broker("b,2")))]

    def test_lost_copies_end_in_a_cross_on_their_links(self, snr: Canvas):
        places = snr.layout.positions
        dead, *lost = self.crosses(snr)
        assert dead == pytest.approx(places[broker("c,1")])
        (left_x, y), (right_x, _) = places[broker("a,2")], places[broker("b,2")]
        assert any(left_x < x < right_x and height == pytest.approx(y) for x, height in lost)
        assert len(lost) == len(explain(FAULTS, Algorithm.SNR).losses) == 2

    def test_boxes_tell_who_is_lost_and_where_targets_were_left(self, snr: Canvas, tnr: Canvas):
        frames = {
            text.get_text(): text.get_bbox_patch().get_linestyle()
            for text in snr.axes.texts
            if text.get_text() in {"S1", "S2", "S3"}
        }
        assert frames == {"S1": "-", "S2": "--", "S3": "--"}
        assert "\N{MULTIPLICATION SIGN} c,1" in [text.get_text() for text in tnr.axes.texts]

    def test_copies_that_go_around_stand_out_with_targets_and_tried_clusters(self, tnr: Canvas):
        around = [text for text in tnr.axes.texts if "tried" in text.get_text()]
        assert len(around) == len(shafts(tnr, CARRYING)) > 0
        assert {text.get_color() for text in around} == {CARRYING}
        assert "a,2\ntried 2" in [text.get_text() for text in around]

    def test_legend_says_what_is_gone(self, snr: Canvas, tnr: Canvas):
        gone = {"a dead broker", "a cut link", "a subscriber, lost"}
        assert {*legend_of(snr)} >= gone | {"a copy that is lost"}
        assert {*legend_of(tnr)} >= gone | {
            "a copy with targets on an aCOL",
            "a copy that goes around",
            "targets that no way leads on to",
        }
        assert "a copy that is lost" not in legend_of(tnr)


def answer(*subscribers: AskedSubscriber) -> RouteExplanation:
    question = Question(SCOT_7, broker("b,2"), Notification({"price": 12}), subscribers)
    return explain(question, Algorithm.SNR)


def with_clients(*subscribers: AskedSubscriber) -> Canvas:
    canvas = draw_canvas(SCOT_7, "title", room=0.5)
    paint_clients(canvas, answer(*subscribers))
    return canvas


def boxes(canvas: Canvas) -> list[str]:
    return [text.get_text() for text in canvas.axes.texts if text.get_bbox_patch() is not None]


def test_publisher_and_subscribers_have_boxes():
    assert boxes(with_clients(subscriber("S1", "c,0"), subscriber("S2", "a,1"))) == [
        "P",
        "S1",
        "S2",
    ]


def test_subscribers_of_one_broker_share_a_box_by_whether_they_were_reached():
    shown = boxes(
        with_clients(
            subscriber("S1", "c,0"), subscriber("S2", "c,0"), subscriber("S3", "c,0", "price > 20")
        )
    )
    assert shown == ["P", "S1 S2", "S3"]


def test_box_of_one_who_was_not_reached_is_dotted():
    canvas = with_clients(subscriber("S1", "c,0"), subscriber("S2", "c,0", "price > 20"))
    frames = [
        text.get_bbox_patch().get_linestyle() for text in canvas.axes.texts if text.get_bbox_patch()
    ]
    assert frames[0] == frames[1] != frames[2]


def test_many_and_long_names_are_cut_short():
    names = ["a-very-long-name", "S2", "S3", "S4", "S5"]
    assert (
        boxes(with_clients(*(subscriber(name, "c,0") for name in names)))[1]
        == "a-very-lo… S2 S3 +2"
    )


def test_picture_grows_where_boxes_reach_over_its_border():
    plain = draw_canvas(SCOT_7, "title", room=0.5)
    wide = with_clients(*(subscriber(f"long-name-{n}", "c,0") for n in range(3)))
    assert wide.axes.get_xlim()[1] > plain.axes.get_xlim()[1]
    left, right = wide.axes.get_xlim()
    assert wide.figure.get_size_inches()[0] == right - left


def test_legend_names_the_kinds_that_are_there():
    some = answer(subscriber("S1", "c,0"), subscriber("S2", "c,0", "price > 20"))
    assert [each.get_label() for each in client_handles(some)] == [
        "P: the publisher",
        "a subscriber, reached",
        "a subscriber, not matching",
    ]
    assert [each.get_label() for each in client_handles(answer())] == ["P: the publisher"]
