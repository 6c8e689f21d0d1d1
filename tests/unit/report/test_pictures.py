"""Pictures are the same to the byte, whenever they are drawn."""

from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from octopis.core.routing import Algorithm
from octopis.errors import OperationFailed
from octopis.report.pictures import ENDINGS, LOOKS, RC, write_figure


def drawn(label: str = "seconds") -> Figure:
    figure = Figure()
    panel = figure.subplots()
    panel.plot([1, 2], [3, 4], clip_on=True)
    panel.set_xlabel(label)
    return figure


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_figure_gives_the_same_file(tmp_path: Path, ending: str):
    one, other, third = (tmp_path / f"{name}{ending}" for name in ("one", "other", "third"))
    write_figure(drawn(), [one])
    write_figure(drawn(), [other])
    write_figure(drawn("minutes"), [third])
    assert one.read_bytes() == other.read_bytes() != third.read_bytes()


def test_file_is_of_the_kind_that_its_name_says_and_without_a_date(tmp_path: Path):
    svg, png = tmp_path / "new" / "a.svg", tmp_path / "other" / "a.PNG"
    write_figure(drawn(), [svg, png])
    assert png.read_bytes().startswith(b"\x89PNG")
    assert b"Matplotlib" not in png.read_bytes()
    text = svg.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "<dc:date>" not in text


def test_file_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "a.svg"
    with pytest.raises(OperationFailed, match=r"cannot write .*a\.svg: (Not a dir|File exists)"):
        write_figure(drawn(), [path])


def test_every_algorithm_has_its_label():
    assert {algorithm: look.label for algorithm, look in LOOKS.items()} == {
        Algorithm.BID: "BID",
        Algorithm.SNR: "SNR",
        Algorithm.DNR: "DNR",
        Algorithm.TNR: "TNR",
    }


def test_no_two_algorithms_share_a_look():
    for places in zip(*LOOKS.values(), strict=True):
        assert len(set(places)) == len(LOOKS)


def test_lines_are_dark_enough_to_be_read_on_white():
    """At least 3 to 1, as for anything that is not text."""

    def luminance(colour: str) -> float:
        parts = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for look in LOOKS.values():
        assert 1.05 / (luminance(look.colour) + 0.05) >= 3


def test_matplotlib_knows_every_setting():
    with mpl.rc_context(RC):
        assert mpl.rcParams["axes.grid"] is True
        assert mpl.rcParams["svg.hashsalt"] == "octopis"
