import json
import sys
from pathlib import Path

import pytest

from octopis.cli.main import main


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["octopis", "demo", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
        return capsys.readouterr().out

    return run


def test_demo_draws_and_explains_the_overlays_of_the_paper(demo, tmp_path: Path):
    printed = demo()
    drawn = sorted(path.name for path in (tmp_path / "out" / "demo").iterdir())
    assert drawn == ["figure-3.png", "figure-3.svg", "paper.png", "paper.svg"]
    assert "reaches all 75 brokers with 74 messages instead of 366 by flooding" in printed
    assert "Whichever 4 brokers die, the others stay connected" in printed


def test_demo_as_json_into_another_folder(demo, tmp_path: Path):
    shown = json.loads(demo("--out", "elsewhere", "--json"))
    assert [each["plan"]["brokers"] for each in shown] == [18, 75]
    assert all((tmp_path / picture).exists() for each in shown for picture in each["pictures"])
