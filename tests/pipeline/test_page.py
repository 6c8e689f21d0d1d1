"""What pages show of the pipeline works as written there, in one Spark instead of one each."""

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
ON_SPARK = ("workload", "sweep", "trace")
"""Commands that these tests run; tests/unit/test_docs.py runs all others."""

WITH_BROKERS = ("README.md", "streaming.md")
"""Pages whose code test_streaming_page.py and test_streaming_sink.py run, as it needs brokers."""

PAGES = {
    page.name: page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], re.DOTALL)


def commands(page: str) -> list[list[str]]:
    return commands_in("\n".join(blocks(page, "console")))


def commands_in(console: str) -> list[list[str]]:
    lines = console.replace("\\\n", " ").splitlines()
    found = [shlex.split(line)[2:] for line in lines if line.startswith("$ octopis ")]
    return [words for words in found if words[0] in ON_SPARK]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_commands_table_and_code_of_the_page_run(
    page: str,
    octopis,
    spark: SparkSession,  # noqa: ARG001 - commands use the session that is there
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    for table in blocks(page, "toml"):
        named = re.match(r"# (\w+\.toml)\n", table)
        (tmp_path / (named[1] if named else "runs.toml")).write_text(table, encoding="utf-8")
    for code, console in re.findall(r"```(?:py\n(.*?)|console\n(.*?))```", PAGES[page], re.DOTALL):
        # Spark was started somewhere else than where this test is now; a reader's notebook is not.
        placed = code.replace('"runs/', f'"{tmp_path}/runs/')
        exec(compile(placed, page, "exec"), {})  # noqa: S102 - our own page
        for words in commands_in(console):
            status, _, told = octopis(*words)
            assert status == 0, f"octopis {shlex.join(words)}: {told}"


def test_code_of_every_page_is_run_here_or_where_there_are_brokers():
    with_code = {page for page in PAGES if blocks(page, "py")}
    assert with_code - {page for page in PAGES if commands(page)} == {*WITH_BROKERS}


def test_pages_show_the_pipeline():
    assert len(commands("pipeline.md")) >= 6
    assert commands("guide.md")
    assert blocks("pipeline.md", "py")
