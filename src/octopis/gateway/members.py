"""Who uses the gateway: one client of the overlay for each identity.

Without security there is one identity, nobody's. A member's client dials again for ever; while it
has no connection, requests wait a little and are then told that the overlay is away.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from octopis.client.client import Client
from octopis.core.filters import Filter
from octopis.errors import ConnectionFailed, InvalidConfiguration, InvalidSubscription
from octopis.gateway.feeds import Feeds
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem, away
from octopis.gateway.settings import GatewayLimits
from octopis.overlay.durables import ask_durables

FOR_EVER_S = 10.0 * 365 * 86_400
_HOMES_KEPT = 8
_log = logging.getLogger(__name__)


class Member:
    """One identity's client, and what it reads."""

    def __init__(self, view: OverlayView, limits: GatewayLimits) -> None:
        self._view, self._limits = view, limits
        self.client = Client(view.url, retry_s=FOR_EVER_S, reconnect_s=FOR_EVER_S, window=50_000)
        self.feeds = Feeds(self.client)
        self._opening = asyncio.create_task(self.client.open())
        self._homes: dict[str, tuple[Client, int]] = {}
        self._known: dict[str, str] = {}
        """At which broker durable subscriptions were last seen, by name."""

    async def close(self) -> None:
        """End all of it."""
        self._opening.cancel()
        await asyncio.gather(self._opening, return_exceptions=True)
        for client in (self.client, *(each for each, _ in self._homes.values())):
            await client.close()

    async def connected(self) -> Client:
        """Return the client once it is connected, or raise Problem where the overlay is away."""
        client = self.client
        if not client.is_connected:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + self._limits.patience_s
            while not client.is_connected:
                if loop.time() > deadline:
                    raise away("no broker can be reached; try again soon")
                await asyncio.sleep(0.02)
        return client

    # Durable subscriptions live at one broker each

    async def home_of(self, name: str) -> str | None:
        """Return the address of the broker where a durable subscription lives, if it is there.

        Raises Problem where brokers that may have it do not answer, or where none has a disk.
        """
        if name in self._known:
            return self._known[name]
        try:
            found = await ask_durables(self._view.addresses, self._limits.patience_s)
        except InvalidConfiguration as failure:
            raise Problem(409, f"this overlay keeps nothing on disk: {failure}") from failure
        hosted = found.get(name)
        if hosted is None:
            if found.silent:
                silent = " ".join(found.silent)
                raise away(f"{name!r} may live at a broker that does not answer: {silent}")
            return None
        self._known[name] = self._view.addresses[hosted.host]
        return self._known[name]

    def forget_home(self, name: str) -> None:
        """Look for a durable subscription anew the next time: it has moved, or is gone."""
        self._known.pop(name, None)

    @asynccontextmanager
    async def at_home(self, name: str, *, makes: Filter | None = None) -> AsyncIterator[Client]:
        """Use a client at the broker where a durable subscription lives.

        Where it is nowhere, that is the broker of the member's own client if it `makes` one, and
        else 404.
        """
        address = await self.home_of(name)
        if address is None:
            if makes is None:
                raise Problem(404, f"there is no durable subscription {name!r}: give a filter")
            client = await self.connected()
            await client.open_durable(name, makes)
            assert client.broker is not None
            address = self._view.addresses.get(client.broker.short, "")
            if not address:  # only addresses are known
                yield client
                return
            self._known[name] = address
        try:
            async with self._at(address) as client:
                yield client
        except InvalidSubscription:
            self.forget_home(name)
            raise

    @asynccontextmanager
    async def _at(self, address: str) -> AsyncIterator[Client]:
        if address not in self._homes:
            client = Client(f"octopis://{address}", connect_s=2.0, reconnect_s=FOR_EVER_S)
            try:
                await client.open()
            except ConnectionFailed as failure:
                raise away(str(failure)) from failure
            if address in self._homes:  # another was quicker
                await client.close()
            else:
                self._homes[address] = client, 0
        client, users = self._homes[address]
        self._homes[address] = client, users + 1
        try:
            yield client
        finally:
            client, users = self._homes.pop(address)
            self._homes[address] = client, users - 1
            await self._let_go()

    async def _let_go(self) -> None:
        """Close clients that nobody has used for longest."""
        idle = [address for address, (_, users) in self._homes.items() if not users]
        for address in idle[: max(0, len(self._homes) - _HOMES_KEPT)]:
            client, _ = self._homes.pop(address)
            await client.close()


class Members:
    """All members, by their tokens."""

    def __init__(self, view: OverlayView, limits: GatewayLimits) -> None:
        self._view, self._limits = view, limits
        self._members: dict[str, Member] = {}

    def of(self, token: str = "") -> Member:
        """Return who has this token; nobody's is "", which is everybody without security."""
        member = self._members.get(token)
        if member is None:
            member = self._members[token] = Member(self._view, self._limits)
        return member

    def __len__(self) -> int:
        return len(self._members)

    async def close(self) -> None:
        """End all."""
        for member in self._members.values():
            await member.close()
