"""An overlay whose brokers can be killed one by one: the other end of the nursery."""

import asyncio
import secrets
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from octopis.benchmarks.broker_roles import overlay_named
from octopis.core.model import BrokerId
from octopis.errors import OperationFailed

_PORTS = range(15_000, 32_000)
"""Below those that the system gives to connections: a dead broker's port must stay free."""

_END_S = 10.0


class MortalBrokers:
    """All brokers of an overlay, each in a process of its own."""

    def __init__(self, overlay: str, ports: list[int], process: asyncio.subprocess.Process) -> None:
        self.scot = overlay_named(overlay)
        self.addresses = {
            broker: f"octopis://127.0.0.1:{port}"
            for broker, port in zip(self.scot.brokers, ports, strict=True)
        }
        self._process = process

    async def start(self, broker: BrokerId) -> None:
        """Start a broker; it is ready a little later."""
        await self._order("start", broker)

    async def kill(self, broker: BrokerId) -> None:
        """End a broker at once."""
        await self._order("kill", broker)

    async def stop(self, broker: BrokerId) -> None:
        """Let a broker stand still."""
        await self._order("stop", broker)

    async def go_on(self, broker: BrokerId) -> None:
        """Let a broker that stands still go on."""
        await self._order("continue", broker)

    async def _order(self, order: str, broker: BrokerId) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        line = f"{order} {self.scot.brokers.index(broker)}\n".encode()
        stdin.write(line)
        if await stdout.readline() != line:
            raise OperationFailed(f"{order} {broker}: the process that starts brokers has ended")


@asynccontextmanager
async def mortal_brokers(
    overlay: str, algorithm: str, log: Path, limits: dict[str, Any] | None = None
) -> AsyncIterator[MortalBrokers]:
    """Run an overlay; whatever happens, all its processes end. What brokers say goes to `log`."""
    ports = _free_ports(len(overlay_named(overlay).brokers))
    options = {"overlay": overlay, "algorithm": algorithm, "ports": ports, "limits": limits or {}}
    with log.open("ab") as said:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "octopis.benchmarks.kills.nursery",
            msgspec.json.encode(options).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=said,
        )
    try:
        brokers = MortalBrokers(overlay, ports, process)
        for broker in brokers.scot.brokers:
            await brokers.start(broker)
        yield brokers
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            process.kill()
            await process.wait()


def _free_ports(count: int) -> list[int]:
    while True:
        first = secrets.choice(_PORTS[:-count])
        ports = list(range(first, first + count))
        with suppress(OSError), ExitStack() as stack:
            for port in ports:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return ports
