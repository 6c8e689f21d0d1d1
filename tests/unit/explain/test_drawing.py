import subprocess
import sys
from io import BytesIO

import pytest

from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue, grow
from octopis.errors import InvalidInput
from octopis.explain.explainer import explain
from octopis.explain.pictures import draw_cases, draw_explanation
from octopis.explain.question import Question
from support.notation import broker, links, subscriber


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


def test_too_large_an_overlay_is_refused():
    scot = grow(2_000, 2)
    answer = explain(Question(scot, scot.brokers[0], Notification({})), Algorithm.SNR)
    with pytest.raises(InvalidInput, match="too many to draw"):
        draw_explanation(answer, "large")


def test_matplotlib_is_loaded_only_to_draw():
    code = "import sys, octopis.explain.pictures; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
