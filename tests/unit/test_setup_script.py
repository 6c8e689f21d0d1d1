"""What `make` says on a machine where a tool is missing. Nothing is installed by these tests."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "scripts" / "setup"
TOOLS = ("sh", "dirname", "sed", "head")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the script in a folder where there is nothing to install."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SETUP, tmp_path / "scripts" / "setup")
    (tmp_path / "tools").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / "tools" / tool).symlink_to(found)
    return tmp_path


def provide(checkout: Path, tool: str, script: str) -> None:
    path = checkout / "tools" / tool
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def refusal(checkout: Path) -> str:
    """Return the one sentence with which set-up stops."""
    done = subprocess.run(
        [checkout / "scripts" / "setup"],
        env={"PATH": str(checkout / "tools")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("octopis: ")
    assert done.stderr.count("\n") == 1
    assert not (checkout / ".venv").exists()
    return done.stderr


def test_missing_python_is_said(checkout: Path):
    assert "install Python 3.11 or newer" in refusal(checkout)


def test_old_python_is_said(checkout: Path):
    provide(checkout, "python3", 'if [ "$1" = --version ]; then echo Python 3.9.2; else exit 1; fi')
    assert "Python 3.9.2 is too old" in refusal(checkout)


def test_python_without_venv_is_said(checkout: Path):
    provide(checkout, "python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    assert "install python3-venv" in refusal(checkout)


def test_missing_java_is_said(checkout: Path):
    provide(checkout, "python3", f'exec {sys.executable} "$@"')
    assert "install Java 17 or newer" in refusal(checkout)


def test_old_java_is_said(checkout: Path):
    provide(checkout, "python3", f'exec {sys.executable} "$@"')
    provide(checkout, "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    assert "Java 11 is too old" in refusal(checkout)


def test_half_made_venv_of_an_interrupted_set_up_is_made_anew(checkout: Path):
    provide(checkout, "java", """echo 'openjdk version "17.0.1" 2021-10-19' >&2""")
    # A Python that passes the checks; asked for a venv, it says how and stops.
    provide(checkout, "python3", 'if [ "$1" = -m ]; then echo "$@" > asked; exit 3; fi')
    provide(checkout, "rm", f'exec {shutil.which("rm")} "$@"')
    half_made = checkout / ".venv" / "bin" / "python"
    half_made.parent.mkdir(parents=True)
    half_made.write_text("#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n")
    half_made.chmod(0o755)
    done = subprocess.run(
        [checkout / "scripts" / "setup"], env={"PATH": str(checkout / "tools")}, check=False
    )
    assert done.returncode == 3
    assert (checkout / "asked").read_text() == "-m venv --clear .venv\n"
