from pathlib import Path

import pytest

from octopis.demo.fault import cast
from octopis.demo.run import run_demo
from octopis.demo.stage import PlainStage
from octopis.demo.workload import SMALL
from octopis.errors import InvalidConfiguration


class Listener(PlainStage):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def test_folder_of_somebody_else_is_refused_before_anything_is_done(tmp_path: Path):
    (tmp_path / "mine").touch()
    stage = Listener()
    with pytest.raises(InvalidConfiguration, match="not from a demo"):
        run_demo(SMALL, cast.SMALL, tmp_path, stage)
    assert stage.said == []
