from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.explain.client_picture import client_handles, paint_clients
from octopis.explain.explainer import explain
from octopis.explain.explanation import RouteExplanation
from octopis.explain.overlay_picture import Canvas
from octopis.explain.pictures import draw_canvas
from octopis.explain.question import AskedSubscriber, Question
from support.notation import broker, subscriber

SCOT_7 = from_catalogue("figure-7").scot


def answer(*subscribers: AskedSubscriber) -> RouteExplanation:
    question = Question(SCOT_7, broker("b,2"), Notification({"price": 12}), subscribers)
    return explain(question, Algorithm.SNR)


def painted(*subscribers: AskedSubscriber) -> Canvas:
    canvas = draw_canvas(SCOT_7, "title", room=0.5)
    paint_clients(canvas, answer(*subscribers))
    return canvas


def boxes(canvas: Canvas) -> list[str]:
    return [text.get_text() for text in canvas.axes.texts if text.get_bbox_patch() is not None]


def test_publisher_and_subscribers_have_boxes():
    assert boxes(painted(subscriber("S1", "c,0"), subscriber("S2", "a,1"))) == ["P", "S1", "S2"]


def test_subscribers_of_one_broker_share_a_box_by_whether_they_were_reached():
    shown = boxes(
        painted(
            subscriber("S1", "c,0"), subscriber("S2", "c,0"), subscriber("S3", "c,0", "price > 20")
        )
    )
    assert shown == ["P", "S1 S2", "S3"]


def test_box_of_one_who_was_not_reached_is_dotted():
    canvas = painted(subscriber("S1", "c,0"), subscriber("S2", "c,0", "price > 20"))
    frames = [
        text.get_bbox_patch().get_linestyle() for text in canvas.axes.texts if text.get_bbox_patch()
    ]
    assert frames[0] == frames[1] != frames[2]


def test_many_and_long_names_are_cut_short():
    names = ["a-very-long-name", "S2", "S3", "S4", "S5"]
    assert boxes(painted(*(subscriber(name, "c,0") for name in names)))[1] == "a-very-lo… S2 S3 +2"


def test_picture_grows_where_boxes_reach_over_its_border():
    plain = draw_canvas(SCOT_7, "title", room=0.5)
    wide = painted(*(subscriber(f"long-name-{n}", "c,0") for n in range(3)))
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
