"""The real `octopis evaluate` while it runs, for tests that press Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.descendants import descendants, still_running

OCTOPIS = Path(sys.executable).with_name("octopis")
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
# On a Spark with the settings of the tests' own: how many files a table has depends on them.
SETTINGS = ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=3")
SMALLEST = (sys.executable, "-c", TINY, "evaluate", *SETTINGS)
"""The same command with scenarios that are soon built."""


class Command:
    """The command while it runs."""

    def __init__(self, words: tuple[str | Path, ...], folder: Path) -> None:
        self._told = folder / "told"
        with self._told.open("w", encoding="utf-8") as told:
            self.process = subprocess.Popen(
                [*words, "--out", folder / "out"],
                env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)},
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
