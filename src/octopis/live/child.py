"""A process of an overlay, as the process that started it sees it."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from socket import socket

import msgspec

from octopis.live.overlay_process import ProcessOrder
from octopis.model import BrokerId

_LOG_LINES = 8


class Child:
    """One process with some of the brokers. `start`, then `end` whatever happens."""

    def __init__(self, number: int, brokers: list[BrokerId], log: Path) -> None:
        self.brokers = brokers
        self.log = log
        self.ready = asyncio.Event()
        self.empty_reports = 0
        """How often in a row it has reported that its queues are empty, while draining."""

        self.queued = 0
        """How many messages wait in its queues, while draining."""

        self._number = number
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None

    async def start(self, order: ProcessOrder, doors: Mapping[BrokerId, socket]) -> None:
        """Start the process; it inherits the doors of its brokers."""
        with self.log.open("ab") as log:
            # A session of its own: Ctrl-C is for the starter alone, which then stops in order.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "octopis.live.overlay_process",
                msgspec.json.encode(order).decode(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                pass_fds=[doors[broker].fileno() for broker in self.brokers],
                start_new_session=True,
            )
        self._listener = asyncio.create_task(self._listen())

    async def ended(self) -> int:
        """Wait until the process has ended, and return its exit status."""
        assert self._process is not None
        return await self._process.wait()

    def drain(self) -> None:
        """Order it to take nothing new, and to report when its queues are empty."""
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):  # it has ended: `ended` says so
            self._process.stdin.write(b"drain\n")

    async def end(self, limit_s: float) -> None:
        """Order it to stop; kill it where it has not ended in time."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(limit_s):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        if self._listener is not None:
            await self._listener

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def fault(self, status: int) -> str:
        """Say that the process has ended, why, and what it said last."""
        how = f"with status {status}"
        if status < 0:
            how = f"by signal {-status} ({signal.Signals(-status).name})"
        few = ", ".join(broker.short for broker in self.brokers[:4])
        more = f" and {len(self.brokers) - 4} more" if len(self.brokers) > 4 else ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        tail = "".join(f"\n  {line}" for line in lines[-_LOG_LINES:])
        return (
            f"process {self._number} with the brokers {few}{more} ended {how}, so the whole "
            f"overlay was stopped; its log {self.log} ends:{tail or ' (it is empty)'}"
        )

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, _, count = line.decode().strip().partition(" ")
            if word == "ready":
                self.ready.set()
            elif word == "queued":
                self.queued = int(count)
                self.empty_reports = 0 if self.queued else self.empty_reports + 1
