"""Spark's driver in a process of its own, to be killed and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from octopis.benchmarks.spark.streaming_driver import PROGRESSED, Options
from octopis.errors import OperationFailed

_STARTS_MAX = 5
_LOOK_S = 0.1
_FIND_S = 5.0
"""So long a blow waits for a worker that it can hit."""

Tell = Callable[[str], object]


@dataclass(frozen=True)
class Held:
    """What somebody has in the end: how many, how many different ones, and their doubles' sum."""

    rows: int
    different: int
    sum: int


class MortalDriver:
    """Spark's driver, started again whenever it has ended."""

    def __init__(self, options: Options, folder: Path, tell: Tell) -> None:
        words = msgspec.json.encode(options).decode()
        self._command = [sys.executable, "-m", "octopis.benchmarks.spark.streaming_driver", words]
        self._folder, self._tell = folder, tell
        self._process: subprocess.Popen[str] | None = None
        self._is_over = False
        self._begun_at = 0.0
        self.failures = 0
        self.first_s: float | None = None
        """How long its queries took, from their very first start, until both had progressed."""

    @property
    def has_progressed(self) -> bool:
        """Whether both queries have finished a batch since they were started last."""
        said = self._folder / PROGRESSED
        return (
            self._process is not None
            and said.exists()
            and said.read_text(encoding="utf-8") == str(self._process.pid)
        )

    def running(self, *, progressed: bool) -> "subprocess.Popen[str]":
        """Return the driver once its queries have begun, or, if that is wanted, progressed."""
        for _ in range(_STARTS_MAX):
            if self._is_over:  # whoever waits in a thread must not start another
                raise OperationFailed("the driver was ended")
            if (self._process is not None or self._begin()) and self._waited(progressed):
                assert self._process is not None
                return self._process
            self._failed()
        raise OperationFailed(f"Spark does not start: {self._said()}")

    def _begin(self) -> bool:
        """Start it, and tell if it comes as far as to begin with its queries."""
        (self._folder / PROGRESSED).unlink(missing_ok=True)
        self._process = self._start()
        assert self._process.stdout is not None
        has_begun = bool(self._process.stdout.readline())
        self._begun_at = time.monotonic()
        return has_begun

    def _waited(self, progressed: bool) -> bool:
        """Wait for progress, if that is wanted, and tell if the driver lives."""
        assert self._process is not None
        while self._process.poll() is None:
            if not progressed or self.has_progressed:
                if progressed and self.first_s is None:
                    self.first_s = time.monotonic() - self._begun_at
                return True
            time.sleep(_LOOK_S)
        return False

    def _start(self) -> "subprocess.Popen[str]":
        (self._folder / "tmp").mkdir(exist_ok=True)
        with (self._folder / "driver.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own command
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "TMPDIR": str(self._folder / "tmp")},
            )

    def finish(self) -> Held:
        """Let the driver take all that is there, and return what the table holds."""
        for _ in range(_STARTS_MAX):
            told, _ = self.running(progressed=self.first_s is None).communicate()
            if told:
                return Held(*msgspec.json.decode(told, type=list[int]))
            self._failed()
        raise OperationFailed(f"Spark does not finish: {self._said()}")

    def _failed(self) -> None:
        self.failures += 1
        self._tell(f"the driver has failed: {self._said()}")
        self.kill()

    def _said(self) -> str:
        lines = (self._folder / "driver.log").read_text(encoding="utf-8").splitlines()
        return lines[-1] if lines else "it says nothing"

    def end(self) -> None:
        """End it for good."""
        self._is_over = True
        self.kill()

    def kill(self) -> bool:
        """End it at once, with its Java and all of its workers, as a machine that fails.

        Tell if it was alive.
        """
        if self._process is None:
            return False
        is_alive = self._process.poll() is None
        for each in [self._process.pid, *_below(self._process.pid)]:
            _end(each)
        self._process.communicate()
        self._process = None
        return is_alive

    def kill_worker(self, chance: Random) -> bool:
        """End one process of Python's that works for it; tell if there was one."""
        process = self._process
        until = time.monotonic() + _FIND_S
        while process is not None and process.poll() is None and time.monotonic() < until:
            below = _below(process.pid)
            parents = {pid for pid in below if "pyspark.daemon" in _words(pid)}
            workers = [pid for pid in parents if _parent(pid) in parents]
            if workers:
                _end(chance.choice(sorted(workers)))
                return True
            time.sleep(_LOOK_S)
        return False


def _end(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _below(process: int) -> list[int]:
    """Return all processes that one has started, and those that these have."""
    parents: dict[int, list[int]] = {}
    for pid in _processes():
        parents.setdefault(_parent(pid), []).append(pid)
    found = [process]
    for each in found:  # it grows meanwhile
        found += parents.get(each, [])
    return found[1:]


def _processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _parent(process: int) -> int:
    try:
        about = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(about.rpartition(")")[2].split()[1])


def _words(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
