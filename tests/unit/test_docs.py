"""What README and docs show works as it is written there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OCTOPIS = Path(sys.executable).with_name("octopis")
LONG = ("bench", "workload", "sweep", "trace")
"""Commands that measure for minutes (their own tests run them small), and those that start a Spark
each (tests/pipeline/test_page.py runs the page's in one)."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """Return the `octopis` commands that a page shows at a prompt, and that start there."""
    lines = "\n".join(blocks(page, "console")).replace("\\\n", " ").splitlines()
    shown = [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ octopis")]
    return [words[1:] for words in shown if words[1] not in LONG]


def id_of(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_python_on_the_page_runs(page: Path):
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), {})  # noqa: S102 - our own page


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_commands_on_the_page_run(page: Path, tmp_path: Path):
    for words in commands(page):
        done = subprocess.run(
            [OCTOPIS, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"octopis {shlex.join(words)}: {done.stderr}"


def test_pages_show_commands_and_code():
    assert len(commands(ROOT / "README.md")) >= 4
    assert any(blocks(page, "python") for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
