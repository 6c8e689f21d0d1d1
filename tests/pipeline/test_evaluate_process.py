"""Ctrl-C at several moments of the real command: it ends, leaves no process, and goes on later."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octopis.evaluation.folders import REQUEST
from octopis.trace import read_summary
from support.descendants import descendants, still_running

OCTOPIS = Path(sys.executable).with_name("octopis")
PATIENCE_S = 240
STAGES = ("quotes", "scenarios", "ground truth", "simulations")


@pytest.fixture(autouse=True)
def _usual_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C mean what it usually does: a Spark of other tests may have a say in it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Command:
    """The command while it runs."""

    def __init__(self, folder: Path) -> None:
        self._told = folder / "told"
        with self._told.open("w", encoding="utf-8") as told:
            self.process = subprocess.Popen(
                [OCTOPIS, "evaluate", "--quick", "--out", folder / "out"],
                env={**os.environ, "TMPDIR": str(folder)},
                stdout=subprocess.DEVNULL,
                stderr=told,
                start_new_session=True,
            )

    @property
    def told(self) -> str:
        return self._told.read_text(encoding="utf-8")

    @property
    def descendants(self) -> dict[int, str]:
        return descendants(self.process.pid)

    def wait_until(self, happens: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not happens():
            assert self.process.poll() is None, f"it has ended: {self.told}"
            assert time.monotonic() < deadline, f"it did not come: {self.told}"
            time.sleep(0.02)

    def interrupt(self, send: Callable[[int, int], None]) -> None:
        """Send Ctrl-C, and check that the command ends as it should and nothing is left of it."""
        below = self.descendants
        assert any("java" in words for words in below.values())
        send(self.process.pid, signal.SIGINT)
        assert self.process.wait(timeout=60) == 130, self.told
        assert still_running(below, 10) == {}
        *lines, last = self.told.splitlines()
        assert last == "octopis: stopped"
        assert all(line.startswith(STAGES) for line in lines), self.told


@contextmanager
def command(folder: Path) -> Iterator[Command]:
    running = Command(folder)
    try:
        yield running
    finally:
        for pid in [*running.descendants, running.process.pid]:  # only where the test has failed
            if running.process.poll() is None:
                os.kill(pid, signal.SIGKILL)
        running.process.wait()


def times(out: Path, *parts: str) -> dict[Path, int]:
    """Return when each file was written."""
    files = [path for part in parts for path in (out / part).rglob("*") if path.is_file()]
    return {path: path.stat().st_mtime_ns for path in files if path.name != "sweep.json"}


def drafts(out: Path, part: str) -> list[Path]:
    return list((out / part).glob(".*.draft"))


def test_ctrl_c_while_spark_starts_leaves_nothing_but_the_request(tmp_path: Path):
    with command(tmp_path) as running:
        running.wait_until(lambda: any("java" in each for each in running.descendants.values()))
        running.interrupt(os.killpg)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [REQUEST]
    assert not list(tmp_path.glob("octopis-*")), "Spark's own folder is gone"


def test_ctrl_c_ends_it_at_any_moment_and_it_goes_on_where_it_was(tmp_path: Path):
    out = tmp_path / "out"

    with command(tmp_path) as running:  # while a scenario is built, to the command alone
        running.wait_until(lambda: len(list((out / "scenarios").glob("[a-z]*"))) >= 2)
        running.wait_until(lambda: drafts(out, "scenarios"))
        running.interrupt(os.kill)
    built = times(out, "quotes", "scenarios")
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".draft")]
    done = len(list((out / "scenarios").iterdir()))

    with command(tmp_path) as running:  # while simulations run, to all as a terminal does
        running.wait_until(lambda: list((out / "runs").glob("*/run.json")) and drafts(out, "runs"))
        assert f"{done} of 27 done" in running.told, "it begins with what was done before"
        running.interrupt(os.killpg)
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".draft")]
    assert built.items() <= times(out, "quotes", "scenarios").items(), "what was built has stayed"
    assert not list(tmp_path.glob("octopis-*")), "Spark's own folder is gone"
    for trace in (out / "runs").glob("*/"):
        assert read_summary(trace).state == "complete", "what is there is whole"
