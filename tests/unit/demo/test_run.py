import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from octopis.demo.report import CONTENTS
from octopis.demo.run import ROUNDS, run_demo
from octopis.demo.stage import PlainStage
from octopis.demo.workload import SMALL
from octopis.errors import InvalidConfiguration

TINY = replace(SMALL, subscribers=8, publishers=2, notifications_each=2, high_rate_notifications=60)


class Listener(PlainStage):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def scenes(self) -> list[str]:
        return [text for text in self.said if text.startswith("Round")]


def test_demonstration_plays_every_algorithm_and_leaves_all_it_promises(
    spark: SparkSession,  # noqa: ARG001 - the demonstration finds this session
    tmp_path: Path,
):
    stage = Listener()
    shown = run_demo(TINY, tmp_path / "demo", stage)
    assert {path.name for path in (tmp_path / "demo").iterdir()} == CONTENTS
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    assert [row.algorithm for row in shown.rows] == list(ROUNDS)
    assert all(not row.verdict.faults for row in shown.rows)
    assert all(row.verdict.due == row.verdict.delivered >= 180 for row in shown.rows)
    assert len(stage.scenes()) == 3
    kept = json.loads((tmp_path / "demo" / "comparison.json").read_text(encoding="utf-8"))
    assert kept == shown.document()
    assert kept["slowed_link"]["source"] == "b,2"
    assert [each["algorithm"] for each in kept["rounds"]] == ["bid", "snr", "dnr"]


def test_folder_of_somebody_else_is_refused_before_anything_is_done(tmp_path: Path):
    (tmp_path / "mine").touch()
    stage = Listener()
    with pytest.raises(InvalidConfiguration, match="not from a demo"):
        run_demo(TINY, tmp_path, stage)
    assert stage.said == []
