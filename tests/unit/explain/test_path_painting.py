import pytest
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch

from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.explain.explainer import explain
from octopis.explain.overlay_picture import Canvas
from octopis.explain.pictures import draw_canvas
from octopis.explain.question import Question
from octopis.explain.way_picture import CARRYING, OVERLOADED, PLAIN, paint_paths
from support.notation import broker, links, subscriber

CASE_1 = Question(
    from_catalogue("figure-7").scot,
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
    paint_paths(canvas, explain(question, algorithm))
    return canvas


@pytest.fixture(scope="module")
def dnr() -> Canvas:
    return painted(Algorithm.DNR)


def lines_of(canvas: Canvas, colour: str) -> list[Line2D]:
    return [line for line in canvas.axes.lines if line.get_color() == colour]


def legend_of(canvas: Canvas) -> list[str]:
    legend = canvas.axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_one_arrow_for_each_copy(dnr: Canvas):
    assert (len(lines_of(dnr, PLAIN)), len(lines_of(dnr, CARRYING))) == (5, 1)


def test_copies_on_icols_are_dashed_and_on_acols_solid(dnr: Canvas):
    dashed = [line for line in lines_of(dnr, PLAIN) if line.is_dashed()]
    assert len(dashed) == 1
    assert lines_of(dnr, CARRYING)[0].is_dashed()


def test_overloaded_link_lies_under_the_links(dnr: Canvas):
    (band,) = lines_of(dnr, OVERLOADED)
    lowest = min(patch.get_zorder() for patch in dnr.axes.patches if isinstance(patch, PathPatch))
    assert band.get_zorder() < lowest
    assert band.get_linewidth() > 2 * lines_of(dnr, PLAIN)[0].get_linewidth()


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
