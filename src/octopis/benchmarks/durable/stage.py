"""Brokers with a disk that can be killed, with publishers and durable subscribers around them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from octopis.benchmarks.channels.clients import Publisher
from octopis.benchmarks.channels.logs import Wants
from octopis.benchmarks.durable.clients import Publishers, Taker
from octopis.benchmarks.kills.brokers import MortalBrokers, mortal_brokers
from octopis.benchmarks.processes import end_of_orders
from octopis.core.model import BrokerId
from octopis.errors import OperationFailed


class Subscriber(msgspec.Struct, frozen=True):
    """A durable subscription, where it lives, and what it wants."""

    name: str
    at: BrokerId
    wants: Wants


class Stage:
    """Brokers, a process of publishers, and one for each subscriber, which has many lives."""

    def __init__(
        self,
        brokers: MortalBrokers,
        folder: Path,
        publishers: Sequence[Publisher],
        subscribers: Sequence[Subscriber],
    ) -> None:
        self.brokers = brokers
        self._folder = folder
        self._publishers = publishers
        self._subscribers = {each.name: each for each in subscribers}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._lives: dict[str, int] = {}

    async def open(self) -> None:
        """Let subscribers subscribe, and publishers connect."""
        for name in self._subscribers:
            await self._start_subscriber(name)
        await self.brokers.settled()
        addresses = {broker.short: url for broker, url in self.brokers.addresses.items()}
        options = Publishers(addresses, str(self._folder), list(self._publishers))
        await self._start("publish", "publish", options)

    async def go(self) -> None:
        """Let publishers begin."""
        await self._tell("publish", "go")

    async def stop(self) -> None:
        """Let publishers stop; all that was accepted is in their logs."""
        await self._tell("publish", "stop")

    async def kill_subscriber(self, name: str) -> None:
        """End a subscriber at once, and let it begin another life."""
        process = self._processes.pop(name)
        process.kill()
        await process.wait()
        await self._start_subscriber(name)

    def accepted(self) -> int:
        """Return how much was accepted so far, by the publishers' logs."""
        found = 0
        for each in self._publishers:
            text = (self._folder / f"{each.name}.said").read_text(encoding="utf-8")
            lines = text[: text.rfind("\n") + 1].splitlines()
            found += sum(int(line.split()[1]) for line in lines if not line.startswith("?"))
        return found

    def notes(self) -> list[str]:
        """Return what clients were told that they should not have been."""
        return (self._folder / "clients.log").read_text(encoding="utf-8").splitlines()

    async def close(self) -> None:
        """End all processes of clients."""
        await end_of_orders(*self._processes.values())

    async def _start_subscriber(self, name: str) -> None:
        life = self._lives[name] = self._lives.get(name, 0) + 1
        about = self._subscribers[name]
        log = self._folder / f"{name}.{life:04d}.taken"
        options = Taker(name, self.brokers.addresses[about.at], about.wants, str(log))
        await self._start(name, "take", options)

    async def _start(self, name: str, role: str, options: Publishers | Taker) -> None:
        """Start a process of clients, and wait until it is ready."""
        with (self._folder / "clients.log").open("ab") as said:
            self._processes[name] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "octopis.benchmarks.durable.clients", role),
                msgspec.json.encode(options).decode(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=said,
                start_new_session=True,  # Ctrl-C is for us alone, who then end it
            )
        await self._heard(name)

    async def _tell(self, name: str, order: str) -> None:
        stdin = self._processes[name].stdin
        assert stdin is not None
        stdin.write(f"{order}\n".encode())
        await self._heard(name)

    async def _heard(self, name: str) -> None:
        stdout = self._processes[name].stdout
        assert stdout is not None
        if not await stdout.readline():
            said = " ".join(self.notes()[-1:])
            raise OperationFailed(f"a process of clients ({name}) has ended too early: {said}")


@asynccontextmanager
async def stage(
    overlay: str,
    folder: Path,
    publishers: Sequence[Publisher],
    subscribers: Sequence[Subscriber],
    settings: Mapping[str, Any],
) -> AsyncIterator[Stage]:
    """Run brokers, with such `settings` of theirs, and clients; publishers wait for `go`."""
    async with AsyncExitStack() as stack:
        log = folder / "brokers.log"
        running = mortal_brokers(overlay, "tnr", log, settings)
        found = Stage(await stack.enter_async_context(running), folder, publishers, subscribers)
        stack.push_async_callback(found.close)
        await found.open()
        yield found
