"""The processes of benchmarks: none of them outlives the one who has started it."""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from octopis.errors import OperationFailed
from octopis.signals import interrupts_wait

_WAIT_S = 10
_PORTS = range(15_000, 32_000)
"""Below those that the system gives to connections, which would take a free one meanwhile."""


def free_ports(count: int) -> list[int]:
    """Return ports in a row that nobody listens at."""
    while True:
        first = secrets.choice(_PORTS[:-count])
        ports = list(range(first, first + count))
        with suppress(OSError), ExitStack() as stack:
            for port in ports:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return ports


def resident_mb(pid: int) -> float | None:
    """Return how much a process has in memory; None where it has ended, or the system is mute."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def run_child(command: list[str], what: str) -> bytes:
    """Run a command and return what it prints; an interrupt ends it, whenever it comes.

    Raises OperationFailed, which says `what` failed, where it ends with another status than 0.
    """
    with interrupts_wait() as let_them_come:
        # An interrupt while the process starts would leave it behind.
        process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own
        try:
            let_them_come()
            printed, _ = process.communicate()
        except BaseException:
            process.kill()
            process.communicate()
            raise
    if process.returncode:
        raise OperationFailed(f"{what} failed with status {process.returncode}")
    return printed


async def end_of_orders(*processes: asyncio.subprocess.Process) -> None:
    """Tell processes that no orders will come any more, and wait until they have ended."""
    for process in processes:
        assert process.stdin is not None, "it is started to take orders"
        process.stdin.close()
    for process in processes:
        try:
            await asyncio.wait_for(process.wait(), _WAIT_S)
        except TimeoutError:
            process.kill()
            await process.wait()


@contextmanager
def started_role(
    role: str, options: dict[str, Any], module: str = "octopis.benchmarks.live.roles"
) -> Iterator["RoleProcess"]:
    """Run a role of a module meanwhile; whatever happens, its process ends."""
    command = [sys.executable, "-m", module, role, msgspec.json.encode(options).decode()]
    popen = subprocess.Popen(  # noqa: S603 - our own
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield RoleProcess(role, popen)
    finally:
        popen.send_signal(signal.SIGTERM)
        try:
            popen.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
        for pipe in (popen.stdin, popen.stdout):
            assert pipe is not None
            pipe.close()


class RoleProcess:
    """A process that speaks in lines of JSON."""

    def __init__(self, role: str, popen: "subprocess.Popen[str]") -> None:
        self.first: dict[str, Any] = {}
        self._role = role
        self._popen = popen

    def hear(self) -> dict[str, Any]:
        """Return the next line, or raise OperationFailed."""
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        if not line:
            raise OperationFailed(f"the {self._role} of the benchmark ended too early")
        found: dict[str, Any] = msgspec.json.decode(line)
        return found

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._popen.pid

    def kill(self) -> None:
        """End the process at once, as by a power cut."""
        self._popen.kill()
        self._popen.wait()

    def go(self) -> None:
        """Tell the process to go."""
        assert self._popen.stdin is not None
        self._popen.stdin.write("go\n")
        self._popen.stdin.flush()
