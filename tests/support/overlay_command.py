"""`octopis overlay up` and its relatives as real processes, and what they leave behind."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from octopis.overlay.status import Statuses, ask_all

OCTOPIS = str(Path(sys.executable).with_name("octopis"))
SMALL = """
[topology]
name = "small"
[acyclic_factor]
edges = [["a", "b"]]
[connectivity_factor]
clusters = 2
[limits]
drain_s = 2.0
"""
"""Four brokers, each linked to two others."""


def wait_until(holds: Callable[[], object], limit_s: float = 30.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, "the condition did not come to hold in time"
        time.sleep(0.01)


class Shell:
    """Runs commands with a state of their own; whatever they start bears a mark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self._started: list[subprocess.Popen[str]] = []
        self._mark = secrets.token_hex(8)
        self._environment = {
            **os.environ,
            "OCTOPIS_STATE": str(self.state),
            "TEST_MARK": self._mark,
        }

    def run(self, *words: str, limit_s: float = 60.0) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            [OCTOPIS, *words],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )

    def start(self, *words: str, **options: Any) -> "subprocess.Popen[str]":
        """Start a command; its streams are pipes unless told otherwise."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(
            [OCTOPIS, *words],
            cwd=self.folder,
            env=self._environment,
            text=True,
            **{**pipes, **options},
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        """End every command that was started and still runs, and see that nothing is left."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            process.wait(timeout=30)
        wait_until(self.is_empty)

    def config(self, text: str = SMALL) -> str:
        """Write an overlay's file, and return its name."""
        (self.folder / "overlay.toml").write_text(text, encoding="utf-8")
        return "overlay.toml"

    def processes(self) -> list[int]:
        """Return the processes that bear the mark and have not ended."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if f"TEST_MARK={self._mark}".encode() in (path / "environ").read_bytes():
                    found.append(int(path.name))
            except OSError:  # it has ended, or is another user's
                continue
        return found

    def workers(self) -> list[int]:
        """Return the processes that run brokers."""
        return [pid for pid in self.processes() if b"octopis.overlay.process" in _command_line(pid)]

    def is_empty(self) -> bool:
        """Tell whether nothing runs any more."""
        return not self.processes()

    @contextmanager
    def up(self, *words: str, port: str = "0") -> Iterator["Up"]:
        """Run an overlay in the foreground; end it whatever happens."""
        process = self.start("overlay", "up", "--port", port, "--json", *words)
        try:
            yield Up(process)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=30)
            wait_until(lambda: not self.workers())


class Up:
    """A running `octopis overlay up`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        text = ""
        while line := process.stdout.readline():
            text += line
            if line == "}\n":
                break
        assert text, f"the overlay did not start: {process.communicate()[1]}"
        self.state: dict[str, Any] = json.loads(text)
        self.addresses: dict[str, str] = self.state["addresses"]

    def url(self, broker: str) -> str:
        """Return where to connect to a broker."""
        return f"octopis://{self.addresses[broker]}"

    def statuses(self) -> Statuses:
        """Ask every broker how it is."""
        return uvloop.run(ask_all(self.addresses))

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Tell it to stop; return its exit status and what it said on standard error."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


def processes_in(folder: Path) -> list[str]:
    """Return the processes that were started with something in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text:
            found.append(path.parent.name)
    return found


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
