from pathlib import Path

import pytest
from matplotlib.figure import Figure

from octopis.errors import OperationFailed
from octopis.evaluation.picture_files import ENDINGS, write_figure


def drawn() -> Figure:
    figure = Figure()
    figure.add_subplot().plot([1, 2], [3, 4])
    return figure


def test_same_figure_gives_the_same_files_to_the_byte(tmp_path: Path):
    folders = [tmp_path / "one", tmp_path / "two" / "deep"]
    for folder in folders:
        write_figure(drawn(), [folder / f"figure{ending}" for ending in ENDINGS])
    for ending in ENDINGS:
        one, two = ((folder / f"figure{ending}").read_bytes() for folder in folders)
        assert one == two
        assert len(one) > 1000


def test_file_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(OperationFailed, match="cannot write"):
        write_figure(drawn(), [tmp_path / "file" / "figure.png"])
