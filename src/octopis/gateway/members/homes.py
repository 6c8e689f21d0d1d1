"""Clients at the brokers where durable subscriptions live: a few are kept, none goes in use."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from octopis.client.client import Client
from octopis.client.credentials import Credentials
from octopis.errors import ConnectionFailed, LoginFailed
from octopis.gateway.members.lately import heard
from octopis.gateway.problems import away, problem_of

FOR_EVER_S = 10.0 * 365 * 86_400
_KEPT = 8


class _Home:
    """A client at one broker, and how many use it or wait until it is open."""

    def __init__(self, address: str, credentials: Credentials | None) -> None:
        options: dict[str, Any] = {"connect_s": 2.0, "reconnect_s": FOR_EVER_S}
        self.client = Client(f"octopis://{address}", **options, credentials=credentials)
        self.users = 0
        self.opening = asyncio.create_task(self.client.open())
        self.opening.add_done_callback(heard)

    async def close(self) -> None:
        self.opening.cancel()
        await asyncio.gather(self.opening, return_exceptions=True)
        await self.client.close()


class Homes:
    """One member's clients at homes, by address; the one used longest ago comes first."""

    def __init__(self, credentials: Credentials | None) -> None:
        self._credentials = credentials
        self._homes: OrderedDict[str, _Home] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._homes)

    @asynccontextmanager
    async def at(self, address: str) -> AsyncIterator[Client]:
        """Use a client at a broker, or raise Problem where it does not let anybody in."""
        home = self._homes.get(address)
        if home is None:
            home = self._homes[address] = _Home(address, self._credentials)
        self._homes.move_to_end(address)
        home.users += 1
        try:
            await self._opened(address, home)
            yield home.client
        finally:
            home.users -= 1
            self._let_go()

    async def close(self) -> None:
        """End all."""
        for address in list(self._homes):
            self._drop(address)
        await asyncio.gather(*self._closing)

    async def _opened(self, address: str, home: _Home) -> None:
        try:
            await asyncio.shield(home.opening)
        except (LoginFailed, ConnectionFailed) as failure:
            if self._homes.get(address) is home:  # who comes next tries anew
                self._drop(address)
            if isinstance(failure, LoginFailed):
                raise problem_of(failure) from failure
            raise away(str(failure)) from failure

    def _let_go(self) -> None:
        """Close clients that nobody has used for longest, where there are too many."""
        idle = [address for address, home in self._homes.items() if not home.users]
        for address in idle[: max(0, len(self._homes) - _KEPT)]:
            self._drop(address)

    def _drop(self, address: str) -> None:
        task = asyncio.create_task(self._homes.pop(address).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
