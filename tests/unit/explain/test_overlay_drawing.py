import subprocess
import sys

import pytest

from octopis.core.model import BrokerId
from octopis.core.topology.catalogue import from_catalogue
from octopis.core.topology.planner import grow
from octopis.errors import InvalidInput
from octopis.explain.pictures import draw, draw_canvas

SCOT_3 = from_catalogue("figure-3").scot


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
    code = "import sys, octopis.cli.main; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
