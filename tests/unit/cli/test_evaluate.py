"""`octopis evaluate`: one sentence for bad input, and progress on a terminal or elsewhere."""

import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from octopis.cli import evaluate as evaluate_output
from octopis.cli.evaluate import shown_progress
from octopis.core.topology import NamedTopology, format_topology, grow
from octopis.evaluation.agenda import OnProgress, Progress
from octopis.evaluation.experiments import EvaluationSize
from octopis.evaluation.folders import REQUEST, claim_folder
from octopis.version import __version__
from support.measures import request
from support.sim_command import refused


@pytest.fixture
def evaluate(octopis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run the command in an empty folder, where it must not get as far as Spark."""
    monkeypatch.chdir(tmp_path)

    def no_spark(*_settings: object) -> None:
        pytest.fail("must not come here")

    monkeypatch.setattr("octopis.cli.evaluate.open_spark", no_spark)
    return lambda *words: refused(octopis, "evaluate", *words)


def everything() -> set[str]:
    return {str(path) for path in Path().rglob("*")}


class TestBadInput:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--quotes", "gone.csv"), "gone.csv"),
            (("--seeds", "0"), "'--seeds': Input should be greater than or equal to 1"),
            (("--seeds", "101"), "'--seeds': Input should be less than or equal to 100"),
            (("--seeds", "x"), "'--seeds': Input should be a valid integer"),
            (("--profile", "papers"), "did you mean 'paper'?"),
            (("--profile", "gone.toml"), "cannot read gone.toml: No such file or directory"),
            (("--topology", "papers"), "did you mean 'paper'?"),
            (("--topology", "gone.toml"), "cannot read gone.toml: No such file or directory"),
            (("--sizes", "9"), "No such option: --sizes"),
            (("quick",), "unexpected extra argument"),
        ],
    )
    def test_option_that_makes_no_sense(self, evaluate, words: tuple[str, ...], said: str):
        assert said in evaluate(*words)
        assert everything() == set()

    def test_folder_without_quotes(self, evaluate):
        Path("empty").mkdir()
        assert "empty holds no file that ends in .csv" in evaluate("--quotes", "empty")
        assert everything() == {"empty"}

    def test_overlay_of_one_cluster_has_nothing_to_compare(self, evaluate):
        text = format_topology(NamedTopology("tree", "", grow(5, 1)))
        Path("tree.toml").write_text(text, encoding="utf-8")
        said = evaluate("--topology", "tree.toml")
        assert "tree.toml has a single cluster: all algorithms would route alike" in said
        assert everything() == {"tree.toml"}

    def test_file_that_is_no_profile(self, evaluate):
        Path("p.toml").write_text("[costs]\nrouting_us = 1\n", encoding="utf-8")
        assert "p.toml" in evaluate("--profile", "p.toml")
        assert everything() == {"p.toml"}

    def test_folder_that_holds_something_else(self, evaluate):
        Path("mine").mkdir()
        Path("mine/letter.txt").touch()
        said = evaluate("--out", "mine")
        assert said == "mine is not empty and holds no evaluation: choose another folder"
        assert everything() == {"mine", "mine/letter.txt"}

    def test_folder_that_is_a_file(self, evaluate):
        Path("file").touch()
        assert evaluate("--out", "file") == "cannot write file: Not a directory"
        assert everything() == {"file"}

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--full",), "another size (quick, not full)"),
            (("--topology", "figure-3"), "another topology (paper, not figure-3)"),
            (("--profile", "octopis"), "another profile (paper, not octopis)"),
            (("--quotes", "a.csv"), "another quotes"),
        ],
    )
    def test_folder_of_another_evaluation(self, evaluate, words: tuple[str, ...], said: str):
        claim_folder(Path("out"), request(version=__version__, size=EvaluationSize.QUICK))
        Path("a.csv").write_text("Date,Open,High,Low,Close,Volume\n", encoding="utf-8")
        before = Path("out", REQUEST).read_bytes()
        assert f"out holds an evaluation with {said}" in evaluate("--out", "out", *words)
        assert everything() == {"a.csv", "out", f"out/{REQUEST}"}
        assert Path("out", REQUEST).read_bytes() == before

    def test_folder_of_another_version(self, evaluate):
        claim_folder(Path("out"), request(version="0.0.0"))
        assert f"another version (0.0.0, not {__version__})" in evaluate("--out", "out")


def progress(stage: str, *, done: int = 1, share: float = 0.25, left_s: float = 75) -> Progress:
    return Progress(stage, done, 8, share, 61.4, left_s)


class TestLines:
    """Progress where standard error is no terminal."""

    @pytest.fixture
    def tell(self) -> Iterator[OnProgress]:
        with shown_progress() as told:
            yield told

    def test_line_says_stage_share_counts_and_times(
        self, tell: OnProgress, capsys: pytest.CaptureFixture[str]
    ):
        tell(progress("scenarios"))
        assert capsys.readouterr().err == (
            "scenarios: 25%, 1 of 8 done, 1:01 so far, about 1:15 left\n"
        )

    def test_every_stage_has_its_line_and_a_stage_has_few(
        self, tell: OnProgress, capsys: pytest.CaptureFixture[str]
    ):
        for stage in ("quotes", "quotes", "scenarios", "scenarios", "report", "report"):
            tell(progress(stage))
        stages = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
        assert stages == ["quotes", "scenarios", "report"]

    def test_long_stage_is_told_of_again(
        self, tell: OnProgress, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ):
        now = 1000.0
        monkeypatch.setattr(evaluate_output.time, "monotonic", lambda: now)
        for now in (1000.0, 1029.9, 1030.0, 1050.0, 1060.1):
            tell(progress("simulations", done=int(now) % 8))
        assert len(capsys.readouterr().err.splitlines()) == 3

    def test_nothing_is_left_at_the_end(self, tell: OnProgress, capsys: pytest.CaptureFixture[str]):
        tell(progress("report", done=8, share=1.0, left_s=0.4))
        assert capsys.readouterr().err == "report: 100%, 8 of 8 done, 1:01 so far\n"


def test_bar_is_shown_on_a_terminal_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch):
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "160")
        with shown_progress() as tell:
            tell(progress("ground truth"))
    shown = b""
    while select.select([ours], [], [], 1)[0]:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # how Linux says that the other end was closed
            break
    os.close(ours)
    text = shown.decode()
    assert "ground truth" in text
    assert "25%" in text
    assert "1 of 8 done" in text
    assert text.rstrip().endswith("\x1b[2K"), "the line is erased"
