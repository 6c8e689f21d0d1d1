"""Who uses the gateway: one client of the overlay for each of them.

Without security that is one for everybody. Its client dials again for ever; while it has no
connection, requests wait a little and are then told that the overlay is away.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from octopis.client.client import Client
from octopis.client.credentials import Credentials
from octopis.core.filters import Filter
from octopis.core.wire.control import LOG_IN_ANEW
from octopis.errors import (
    ConnectionFailed,
    ConnectionLost,
    InvalidConfiguration,
    InvalidSubscription,
    LoginFailed,
    NotPermitted,
    OctopisError,
)
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem, answered_within, away, problem_of
from octopis.gateway.readers.feeds import Feeds
from octopis.gateway.readers.reader import Reader
from octopis.gateway.settings import GatewayLimits
from octopis.overlay.durables import ask_durables

FOR_EVER_S = 10.0 * 365 * 86_400
STATUS_S = 2.0
"""So long it counts that a role may see how brokers are; then it is asked for again."""

_HOMES_KEPT = 8


class Member:
    """One identity's client, and what it reads."""

    def __init__(
        self, view: OverlayView, limits: GatewayLimits, credentials: Credentials | None = None
    ) -> None:
        self._view, self._limits = view, limits
        self.credentials = credentials
        # A login that may be wrong is not tried for ever.
        retry_s = FOR_EVER_S if credentials is None else limits.patience_s
        self.client = Client(
            view.url,
            retry_s=retry_s,
            reconnect_s=FOR_EVER_S,
            window=50_000,
            credentials=credentials,
        )
        self.client.on_goodbye = self._hear_goodbye
        self.feeds = Feeds(self.client)
        self.users = 0
        """How many requests and streams go on."""

        self.is_over = self.is_expired = False
        self.ends: asyncio.TimerHandle | None = None
        """Ends it when its token does."""

        self._readers: set[Reader] = set()
        self._sees_status_until = 0.0
        self._opening = asyncio.create_task(self.client.open())
        self._opening.add_done_callback(_heard)
        self._homes: dict[str, tuple[Client, int]] = {}
        self._known: dict[str, str] = {}
        """At which broker durable subscriptions were last seen, by name."""

    @property
    def failure(self) -> BaseException | None:
        """Why there is no connection, and will be none; None as long as there may be one."""
        if self._opening.done() and not self._opening.cancelled() and self._opening.exception():
            return self._opening.exception()
        return self.client.failure

    @contextmanager
    def used(self, reader: Reader | None = None) -> Iterator[None]:
        """Be in use meanwhile; a reader ends when the member does."""
        self.users += 1
        if reader is not None:
            self._readers.add(reader)
        try:
            yield
        finally:
            self.users -= 1
            if reader is not None:
                self._readers.discard(reader)

    async def opened(self) -> None:
        """Return when it has logged in, or raise why it has not."""
        async with asyncio.timeout(self._limits.answer_s):
            await asyncio.shield(self._opening)

    def expire(self, reason: str) -> None:
        """End all its readers, as its token has ended; `close` it then."""
        self.is_over = self.is_expired = True
        self._end_readers(reason)

    def _hear_goodbye(self, reason: str) -> None:
        """End all its readers where its role is another now: what waits for them is of the old."""
        if reason.endswith(LOG_IN_ANEW):
            self._sees_status_until = 0.0
            self.feeds.end(reason)
            self._end_readers(reason)

    def _end_readers(self, reason: str) -> None:
        for reader in list(self._readers):
            reader.end(reason)

    async def close(self) -> None:
        """End all of it."""
        self.is_over = True
        if self.ends is not None:
            self.ends.cancel()
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
                if isinstance(failure := self.failure, LoginFailed):
                    raise Problem(401, str(failure.__cause__ or failure))
                if loop.time() > deadline:
                    raise away("no broker can be reached; try again soon")
                await asyncio.sleep(0.02)
        return client

    async def check_status(self) -> None:
        """Raise Problem unless its role may see how brokers are. Without security, all may."""
        loop = asyncio.get_running_loop()
        if self.credentials is None or loop.time() < self._sees_status_until:
            return
        client = await self.connected()
        try:
            async with asyncio.timeout(self._limits.answer_s):
                await client.status()
        except (ConnectionLost, TimeoutError) as failure:
            raise away(str(failure) or "no broker answers") from failure
        except OctopisError as failure:
            raise problem_of(failure) from failure
        self._sees_status_until = loop.time() + STATUS_S

    # Durable subscriptions live at one broker each

    async def home_of(self, name: str) -> str | None:
        """Return the address of the broker where a durable subscription lives, if it is there.

        Raises Problem where brokers that may have it do not answer, or where none has a disk.
        """
        if name in self._known:
            return self._known[name]
        try:
            found = await ask_durables(
                self._view.addresses, self._limits.patience_s, self.credentials
            )
        except NotPermitted as failure:
            raise problem_of(failure) from failure
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
        was_known = name in self._known
        address = await self.home_of(name)
        if was_known and address is not None and not await self._lives_at(name, address):
            self.forget_home(name)
            address = await self.home_of(name)
        if address is None:
            if makes is None:
                raise Problem(404, f"there is no durable subscription {name!r}: give a filter")
            client = await self.connected()
            async with answered_within(self._limits.answer_s):
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

    async def _lives_at(self, name: str, address: str) -> bool:
        """Tell whether a durable subscription is where it was seen: it may have moved, or ended."""
        async with self._at(address) as client:
            try:
                async with answered_within(self._limits.answer_s):
                    await client.open_durable(name)
            except InvalidSubscription:
                return False
            return True

    @asynccontextmanager
    async def _at(self, address: str) -> AsyncIterator[Client]:
        if address not in self._homes:
            options: dict[str, Any] = {"connect_s": 2.0, "reconnect_s": FOR_EVER_S}
            client = Client(f"octopis://{address}", **options, credentials=self.credentials)
            try:
                await client.open()
            except LoginFailed as failure:
                raise problem_of(failure) from failure
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


def _heard(task: "asyncio.Task[None]") -> None:
    """Let nobody complain that a failure was not heard of: `failure` has it."""
    if not task.cancelled():
        task.exception()
