"""Ctrl-C at several moments of the real command: it ends, leaves no process, and goes on later."""

import os
import re
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
TESTS = Path(__file__).parent.parent
PATIENCE_S = 240
STAGES = ("quotes", "scenarios", "ground truth", "simulations", "metrics")
SPARK = re.compile(r"bin/java (?!.*launcher\.Main).*org\.apache\.spark\.deploy\.SparkSubmit")
QUICK = (OCTOPIS, "evaluate", "--quick")
TINY = """
from octopis.cli.main import main
from support.evaluations import tiny_sizes
with tiny_sizes():
    main()
"""
SMALLEST = (sys.executable, "-c", TINY, "evaluate")
"""The same command, for late moments: its scenarios are soon built."""


@pytest.fixture(autouse=True)
def _usual_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C mean what it usually does: a Spark of other tests may have a say in it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Command:
    """The command while it runs."""

    def __init__(self, words: tuple[str | Path, ...], folder: Path) -> None:
        self._told = folder / "told"
        with self._told.open("w", encoding="utf-8") as told:
            self.process = subprocess.Popen(
                [*words, "--out", folder / "out"],
                env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(TESTS)},
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

    @property
    def has_spark(self) -> bool:
        return any(SPARK.search(words) for words in self.descendants.values())

    def wait_until(self, happens: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not happens():
            assert self.process.poll() is None, f"it has ended: {self.told}"
            assert time.monotonic() < deadline, f"it did not come: {self.told}"
            time.sleep(0.02)

    def interrupt(self, send: Callable[[int, int], None]) -> None:
        """Send Ctrl-C, and check that the command ends as it should and nothing is left of it."""
        assert self.has_spark
        below = self.descendants
        send(self.process.pid, signal.SIGINT)
        assert self.process.wait(timeout=60) == 130, self.told
        assert still_running(below, 10) == {}
        *lines, last = self.told.splitlines()
        assert last == "octopis: stopped"
        assert all(line.startswith(STAGES) for line in lines), self.told


@contextmanager
def command(words: tuple[str | Path, ...], folder: Path) -> Iterator[Command]:
    running = Command(words, folder)
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


def scenarios(out: Path) -> set[str]:
    return {path.name for path in (out / "scenarios").glob("[a-z]*")}


def draft_in(folder: Path) -> bool:
    return any(folder.glob(".*.draft"))


def assert_tidy(folder: Path) -> None:
    assert not [path for path in folder.rglob("*") if path.name.endswith(".draft")]
    assert not list(folder.glob("octopis-*")), "Spark's own folder is gone"


def test_ctrl_c_while_spark_starts_leaves_nothing_but_the_request(tmp_path: Path):
    with command(QUICK, tmp_path) as running:
        running.wait_until(lambda: running.has_spark)
        running.interrupt(os.killpg)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [REQUEST]
    assert_tidy(tmp_path)


def test_ctrl_c_while_a_scenario_is_built_keeps_the_others(tmp_path: Path):
    out = tmp_path / "out"
    with command(QUICK, tmp_path) as running:
        running.wait_until(lambda: scenarios(out) and draft_in(out / "scenarios"))
        running.interrupt(os.kill)  # to the command alone
    assert_tidy(tmp_path)
    before, done = times(out, "quotes", "scenarios"), len(scenarios(out))

    with command(QUICK, tmp_path) as running:
        running.wait_until(lambda: len(scenarios(out)) > done)
        assert f"{done} of 27 done" in running.told, "it begins with what was done before"
        running.interrupt(os.killpg)  # to all, as a terminal does
    assert_tidy(tmp_path)
    assert before.items() <= times(out, "quotes", "scenarios").items()


def test_ctrl_c_while_simulations_run_keeps_the_traces_that_are_whole(tmp_path: Path):
    out = tmp_path / "out"

    def traces() -> list[Path]:
        return [path.parent for path in (out / "runs").glob("*/run.json")]

    with command(SMALLEST, tmp_path) as running:
        running.wait_until(lambda: traces() and draft_in(out / "runs"))
        running.interrupt(os.killpg)
    assert_tidy(tmp_path)
    assert {read_summary(trace).state for trace in traces()} == {"complete"}
