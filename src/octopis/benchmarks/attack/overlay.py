"""A real overlay for an attack: processes of brokers as `overlay up --detach` starts them.

It ends with the process that has started it, however that ends: nobody tells it to stay.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from octopis.benchmarks.processes import resident_mb
from octopis.errors import OperationFailed
from octopis.overlay.detached import StartAnswer
from octopis.overlay.registry import OverlayState
from octopis.overlay.status import ask_all
from octopis.overlay.supervisor import OverlayOrder

_END_S = 20.0
_LOOK_S = 0.2
_MODULE = b"octopis.overlay.process"


class RunningOverlay:
    """An overlay that runs, and its processes."""

    def __init__(
        self,
        state: OverlayState,
        process: asyncio.subprocess.Process,
        credentials: Path | None = None,
    ) -> None:
        self.state = state
        self._process = process
        self._credentials = credentials

    @property
    def has_ended(self) -> bool:
        """Whether the whole overlay has ended by itself."""
        return self._process.returncode is not None

    def url(self, broker: str) -> str:
        """Return where to connect to a broker."""
        return f"octopis://{self.state.addresses[broker]}"

    def memory_mb(self) -> float | None:
        """Return how much the largest process of brokers has in memory; None where none says."""
        found = [mb for pid in self._workers() if (mb := resident_mb(pid)) is not None]
        return max(found, default=None)

    def kill_process_of(self, broker: str) -> None:
        """Kill the process that runs a broker, as the system may at any time."""
        for pid in self._workers():
            order = _command_line(pid)[-1]
            if order and broker in json.loads(order)["listeners"]:
                os.kill(pid, signal.SIGKILL)
                return
        raise OperationFailed(f"no process runs {broker}: only Linux says which one does")

    async def hold(self, subscriptions: int, limit_s: float, *brokers: str) -> None:
        """Wait until brokers, or all of them, know so many subscriptions."""
        addresses = {each: self.state.addresses[each] for each in brokers or self.state.addresses}
        try:
            async with asyncio.timeout(limit_s):
                while True:
                    found = await ask_all(addresses, credentials=self._credentials)
                    counts = [each.get("subscriptions", 0) for each in found.values()]
                    if min(counts) >= subscriptions:
                        return
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError as failure:
            raise OperationFailed(
                f"brokers did not learn {subscriptions:,} subscriptions within {limit_s:g} s"
            ) from failure

    def _workers(self) -> list[int]:
        """Return the processes that run brokers."""
        try:
            path = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            children = [int(pid) for pid in path.read_text(encoding="utf-8").split()]
        except OSError:  # it has ended, or this is not Linux
            return []
        return [pid for pid in children if _MODULE in _command_line(pid)]


@asynccontextmanager
async def running_overlay(
    configuration: str, processes: int, code: Path | None, credentials: Path | None = None
) -> AsyncIterator[RunningOverlay]:
    """Run an overlay at free ports, of the version whose source is in `code`, or of this one."""
    environment = dict(os.environ)
    if code is not None:
        environment["PYTHONPATH"] = str(code.absolute())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        order = OverlayOrder(
            configuration=configuration, state=folder, processes=processes, first_port=0
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "octopis.overlay.detached"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us alone, who then stop it
        )
        try:
            yield RunningOverlay(await _started(process, order), process, credentials)
        finally:
            await _ended(process)


async def _started(process: asyncio.subprocess.Process, order: OverlayOrder) -> OverlayState:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(order) + b"\n")
    line = await process.stdout.readline()
    answer = msgspec.json.decode(line, type=StartAnswer) if line else StartAnswer()
    if answer.state is None:
        raise OperationFailed(answer.error or "the overlay's process ended before it was ready")
    return answer.state


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Stop the overlay at once: nobody wants what is in its queues."""
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_END_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _command_line(pid: int) -> list[bytes]:
    """Return the words of a process; one empty word where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return [b""]
