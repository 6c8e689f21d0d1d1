"""A real command on a terminal of its own, where Ctrl-C goes to all of its processes."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.descendants import descendants, still_running

JAVA = re.compile(r"bin/java (?!.*launcher\.Main).*org\.apache\.spark\.deploy\.SparkSubmit")
PATIENCE_S = 240
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BAR = "━"


class OnTerminal:
    """The command while it runs; it takes `folder` for its working and its temporary folder."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        self._text = b""
        path = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "octopis", *words],
            env={**os.environ, "TMPDIR": str(folder), "TERM": "xterm", "PYTHONPATH": path},
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def read(self) -> bool:
        """Take in what was shown; tell whether there may be more."""
        if select.select([self._ours], [], [], 0.02)[0]:
            try:
                shown = os.read(self._ours, 65_536)
            except OSError:  # nobody has the terminal open any more
                return False
            self._text += shown
        return True

    @property
    def shown(self) -> list[str]:
        """The lines that stay, without the bar that comes and goes."""
        plain = _CODES.sub("", self._text.decode())
        return [line for line in re.split(r"[\r\n]+", plain) if line.strip() and _BAR not in line]

    @property
    def has_java(self) -> bool:
        return any(JAVA.search(words) for words in descendants(self.process.pid).values())

    def wait_until(self, happens: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not happens():
            assert self.read(), f"it has ended: {self.shown}"
            assert time.monotonic() < deadline, f"it did not come: {self.shown}"
            time.sleep(0.05)

    def type(self, text: str) -> None:
        """Type a text, as somebody at the terminal does."""
        os.write(self._ours, text.encode())

    def wait(self) -> int:
        """Read on until it ends by itself, and return its status."""
        while self.read() and self.process.poll() is None:
            pass
        self.read()
        return self.process.wait(60)

    def end(self, number: int = signal.SIGINT, times: int = 1) -> int:
        """Send a signal to all of its processes, wait until none is left, return the status."""
        below = descendants(self.process.pid)
        for _ in range(times):
            os.killpg(self.process.pid, number)
            time.sleep(0.1)
        while self.read():
            pass
        status = self.process.wait(60)
        assert still_running(below, 10) == {}
        return status

    def close(self) -> None:
        for pid in [*descendants(self.process.pid), self.process.pid]:  # where the test has failed
            if self.process.poll() is None:
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._ours)


@contextmanager
def on_terminal(folder: Path, *words: str) -> Iterator[OnTerminal]:
    running = OnTerminal(folder, *words)
    try:
        yield running
    finally:
        running.close()
