import subprocess
import sys
from collections.abc import Callable
from io import BytesIO

import pytest

from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue, grow
from octopis.errors import InvalidInput, MissingExtra
from octopis.explain import pictures
from octopis.explain.explainer import explain
from octopis.explain.pictures import draw, draw_canvas, draw_cases, draw_explanation
from octopis.explain.question import Question
from support.notation import broker, links, subscriber

SCOT_3 = from_catalogue("figure-3").scot


def case_3() -> Question:
    return Question(
        from_catalogue("figure-7").scot,
        broker("b,2"),
        Notification({}),
        (subscriber("S1", "a,0"), subscriber("S2", "c,1"), subscriber("S3", "c,2")),
        frozenset(links("b,2>b,0 b,2>b,1 b,2>c,2 b,1>b,0 c,1>c,0")),
        {links("b,2>b,0").pop(): 20, links("b,2>b,1").pop(): 15},
    )


@pytest.mark.parametrize(
    ("algorithm", "title"),
    [
        (Algorithm.SNR, "figure-7, SNR: 5 IMs"),
        (Algorithm.DNR, "figure-7, DNR: 6 IMs, case II, case III x2"),
        (Algorithm.BID, "figure-7, BID: 5 IMs"),
        (Algorithm.TNR, "figure-7, TNR: 4 IMs, crossed late x2, waits"),
    ],
)
def test_title_names_overlay_algorithm_ims_and_cases(algorithm: Algorithm, title: str):
    figure = draw_explanation(explain(case_3(), algorithm), "figure-7")
    assert title in [text.get_text() for text in figure.axes[0].texts]
    figure.savefig(BytesIO(), format="svg")


def test_cases_can_be_drawn():
    written = BytesIO()
    draw_cases().savefig(written, format="png")
    assert written.getvalue().startswith(b"\x89PNG")


def test_way_on_too_large_an_overlay_is_refused():
    scot = grow(2_000, 2)
    answer = explain(Question(scot, scot.brokers[0], Notification({})), Algorithm.SNR)
    with pytest.raises(InvalidInput, match="too many to draw"):
        draw_explanation(answer, "large")


def test_picture_is_as_large_as_the_overlay_needs():
    small = draw(SCOT_3, "small").get_size_inches()
    large = draw(from_catalogue("paper").scot, "large").get_size_inches()
    assert (large > small).all()


def test_canvas_gives_the_layout_in_the_coordinates_of_its_axes():
    canvas = draw_canvas(SCOT_3, "title")
    x, y = canvas.layout.positions[BrokerId("f", 2)]
    labels = {text.get_position(): text.get_text() for text in canvas.axes.texts}
    assert labels[x, y] == "f,2"


def test_too_large_an_overlay_is_refused():
    with pytest.raises(InvalidInput, match="too many to draw"):
        draw(grow(2_000, 2), "large")


def test_matplotlib_is_loaded_only_to_draw():
    code = (
        "import sys, octopis.cli.route, octopis.cli.topology; sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pictures, "find_spec", {"matplotlib": None}.__getitem__)


@pytest.mark.usefixtures("no_matplotlib")
@pytest.mark.parametrize(
    "drawing",
    [
        lambda: draw(SCOT_3, "title"),
        lambda: draw_explanation(explain(case_3(), Algorithm.SNR), "figure-7"),
        draw_cases,
    ],
)
def test_without_matplotlib_the_extra_to_install_is_named(drawing: Callable[[], object]):
    with pytest.raises(MissingExtra) as caught:
        drawing()
    assert str(caught.value) == (
        "drawing needs matplotlib: "
        "pip install 'octopis[report]' (in a checkout: pip install -e '.[report]')"
    )
