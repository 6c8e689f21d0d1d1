"""An overlay whose brokers can be killed one by one: the other end of the nursery."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

import octopis
from octopis.benchmarks.live.roles import overlay_named
from octopis.benchmarks.processes import end_of_orders, free_ports, resident_mb
from octopis.core.model import BrokerId
from octopis.errors import OperationFailed
from octopis.overlay.status import Statuses, ask_all

_SETTLE_S = 60.0
_LOOK_S = 0.05


class MortalBrokers:
    """All brokers of an overlay, each in a process of its own."""

    def __init__(self, overlay: str, ports: list[int], process: asyncio.subprocess.Process) -> None:
        self.scot = overlay_named(overlay)
        self.addresses = {
            broker: f"octopis://127.0.0.1:{port}"
            for broker, port in zip(self.scot.brokers, ports, strict=True)
        }
        self._process = process
        self._pids: dict[BrokerId, int] = {}

    async def start(self, broker: BrokerId) -> None:
        """Start a broker; it is ready a little later."""
        self._pids[broker] = int(await self._order("start", broker))

    async def kill(self, broker: BrokerId) -> None:
        """End a broker at once."""
        await self._order("kill", broker)

    async def stop(self, broker: BrokerId) -> None:
        """Let a broker stand still."""
        await self._order("stop", broker)

    async def go_on(self, broker: BrokerId) -> None:
        """Let a broker that stands still go on."""
        await self._order("continue", broker)

    async def cut(self, broker: BrokerId, neighbour: BrokerId) -> None:
        """Break the connection between two brokers that live; they dial again."""
        await self._order("cut", broker, neighbour)

    async def status(self, *brokers: BrokerId) -> Statuses:
        """Ask brokers, or all of them, how they are."""
        places = {
            each.short: self.addresses[each].removeprefix("octopis://")
            for each in brokers or self.scot.brokers
        }
        return await ask_all(places)

    async def is_back(self, broker: BrokerId, limit_s: float) -> None:
        """Wait until a broker takes requests and has all its links."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            found = (await self.status(broker))[broker.short]
            if found.get("ready") and all(link["up"] for link in found["links"].values()):
                return
            await asyncio.sleep(_LOOK_S)
        raise OperationFailed(f"{broker} is not back within {limit_s:g} s")

    async def settled(self) -> None:
        """Wait until every broker knows all subscriptions."""
        address = self.addresses[self.scot.brokers[0]]
        async with octopis.connect(address, retry_s=_SETTLE_S) as client:
            await client.settled(timeout_s=_SETTLE_S)

    def memory_mb(self) -> dict[BrokerId, float]:
        """Return how much each broker that lives has in memory, where the system says so."""
        found = {broker: resident_mb(pid) for broker, pid in self._pids.items()}
        return {broker: mb for broker, mb in found.items() if mb is not None}

    async def _order(self, order: str, *brokers: BrokerId) -> str:
        """Let the nursery do something; return what it says to that."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        numbers = " ".join(str(self.scot.brokers.index(each)) for each in brokers)
        line = f"{order} {numbers}"
        stdin.write(f"{line}\n".encode())
        answer = (await stdout.readline()).decode()
        if not answer.startswith(line):
            named = " ".join(map(str, brokers))
            raise OperationFailed(f"{order} {named}: the process that starts brokers has ended")
        return answer.removeprefix(line).strip()


@asynccontextmanager
async def mortal_brokers(
    overlay: str, algorithm: str, log: Path, settings: Mapping[str, Any] | None = None
) -> AsyncIterator[MortalBrokers]:
    """Run an overlay; whatever happens, all its processes end. What brokers say goes to `log`.

    `settings` are those of `nursery.Overlay`.
    """
    ports = free_ports(len(overlay_named(overlay).brokers))
    options = {"overlay": overlay, "algorithm": algorithm, "ports": ports, **(settings or {})}
    with log.open("ab") as said:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "octopis.benchmarks.kills.nursery",
            msgspec.json.encode(options).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=said,
            start_new_session=True,  # Ctrl-C is for us alone, who then end it
        )
    try:
        brokers = MortalBrokers(overlay, ports, process)
        for broker in brokers.scot.brokers:
            await brokers.start(broker)
        yield brokers
    finally:
        await end_of_orders(process)
