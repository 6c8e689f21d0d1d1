"""The worked example of streaming runs as it is, with all the processes that it starts."""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer

PROGRAM = Path(__file__).parents[2] / "examples" / "streaming_alerts.py"
LIMIT_S = 300.0
"""Ten times what it takes where nothing else runs."""

ALERT = re.compile(r"minute (\d+), ([ns]\d): \d times hot, up to \d\d\.\d degrees")


class Example:
    """The example, and whatever it has started, which bears a mark."""

    def __init__(self, folder: Path) -> None:
        self._mark = secrets.token_hex(8)
        self.process = subprocess.Popen(
            [sys.executable, "-u", str(PROGRAM), "10"],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder), "TEST_MARK": self._mark},
            stdout=subprocess.PIPE,
            text=True,
        )

    def lines(self) -> Iterator[str]:
        """Yield what it prints."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield line.rstrip()

    def left(self) -> dict[int, str]:
        """Return what still runs when all has had a little time to end."""
        deadline = time.monotonic() + 20
        while (found := self._running()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return found

    def _running(self) -> dict[int, str]:
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or is another user's
                if f"TEST_MARK={self._mark}".encode() in (path / "environ").read_bytes():
                    found[int(path.name)] = (path / "cmdline").read_text()
        return found

    def kill(self) -> None:
        """End all of it."""
        for process in self._running():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@contextmanager
def example(folder: Path) -> Iterator[Example]:
    running = Example(folder)
    watchdog = Timer(LIMIT_S, running.kill)
    watchdog.start()
    try:
        yield running
    finally:
        watchdog.cancel()
        running.kill()
        running.process.communicate()


def test_alerts_are_exact_though_the_driver_is_killed_and_nothing_is_left(tmp_path: Path):
    with example(tmp_path) as running:
        lines = list(running.lines())
        assert running.process.wait() == 0, lines
        assert running.left() == {}
    (killed,) = [number for number, line in enumerate(lines) if "driver is killed" in line]
    found = [
        (number, match.groups())
        for number, line in enumerate(lines)
        if (match := ALERT.fullmatch(line))
    ]
    assert found[0][0] < killed < found[-1][0]
    alerts = [alert for _, alert in found]
    assert len({*alerts}) == len(alerts) > 10
    assert lines[-1] == f"{len(alerts)} alerts were due, by plain Python: 0 lost, 0 too many."
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_in_the_middle_leaves_nothing(tmp_path: Path):
    with example(tmp_path) as running:
        assert any(ALERT.fullmatch(line) for line in running.lines())  # Spark is at work
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait() == 130
        assert running.left() == {}
    assert list(tmp_path.iterdir()) == []
