"""What docs/pipeline.md shows works as it is written there, in one Spark instead of one each."""

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_commands_table_and_code_of_the_page_run(
    octopis,
    spark: SparkSession,  # noqa: ARG001 - commands use the session that is there
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    (table,) = blocks("toml")
    (tmp_path / "runs.toml").write_text(table, encoding="utf-8")
    lines = "\n".join(blocks("console")).replace("\\\n", " ").splitlines()
    assert len(lines) >= 6
    for line in lines:
        prompt, name, *words = shlex.split(line)
        assert (prompt, name) == ("$", "octopis")
        status, _, told = octopis(*words)
        assert status == 0, f"{line}: {told}"
    # Spark was started somewhere else than where this test is now; a reader's notebook is not.
    (code,) = (block.replace('"runs/', f'"{tmp_path}/runs/') for block in blocks("py"))
    exec(compile(code, "docs/pipeline.md", "exec"), {})  # noqa: S102 - our own page
