"""Pictures are the same to the byte, whenever they are drawn."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from octopis.errors import OperationFailed
from octopis.report.pictures import ENDINGS, write_figure


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
