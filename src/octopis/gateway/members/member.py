"""Who uses the gateway: one client of the overlay for each of them.

Without security that is one for everybody. Its client dials again for ever; while it has no
connection, requests wait a little and are then told that the overlay is away.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial

from octopis.client.client import Client
from octopis.client.credentials import Credentials
from octopis.core.filters import Filter
from octopis.core.wire.control import LOG_IN_ANEW
from octopis.core.wire.durable import DurableInfo
from octopis.errors import (
    ConnectionLost,
    InvalidConfiguration,
    InvalidSubscription,
    LoginFailed,
    NotPermitted,
    OctopisError,
)
from octopis.gateway.members.homes import FOR_EVER_S, Homes
from octopis.gateway.members.lately import Lately, heard
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem, answered_within, away, problem_of
from octopis.gateway.readers.feeds import Feeds
from octopis.gateway.readers.reader import Reader
from octopis.gateway.settings import GatewayLimits
from octopis.overlay.durables import Found, ask_durables
from octopis.overlay.status import Statuses, ask_all

STATUS_S = 2.0
"""So long it counts that a role may see how brokers are; then it is asked for again."""


class Member:
    """One identity's client, and what it reads."""

    def __init__(
        self,
        view: OverlayView,
        limits: GatewayLimits,
        room: asyncio.Semaphore,
        credentials: Credentials | None = None,
    ) -> None:
        """Begin to log in. `room` bounds the connections over which all members ask brokers."""
        self._view, self._limits, self._room = view, limits, room
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
        self._opening.add_done_callback(heard)
        self._homes = Homes(credentials)
        self._statuses: dict[str, Lately[Statuses]] = {}
        self._durables = Lately(self._ask_durables)
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
        await self._homes.close()
        await self.client.close()

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

    async def status(self, broker: str = "") -> Statuses:
        """Return how all brokers are, or one, as they said half a second ago at most."""
        if broker not in self._statuses:
            all_ = self._view.addresses
            addresses = {broker: all_[broker]} if broker else all_
            self._statuses[broker] = Lately(
                partial(ask_all, addresses, credentials=self.credentials, room=self._room)
            )
        return await self._statuses[broker].get()

    # Durable subscriptions live at one broker each

    @asynccontextmanager
    async def at_home(self, name: str, *, makes: Filter | None = None) -> AsyncIterator[Client]:
        """Use a client at the broker where a durable subscription lives.

        Where it is nowhere, that is the broker of the member's own client if it `makes` one, and
        else 404.
        """
        async with self.opened_at_home(name, makes=makes) as (client, _):
            yield client

    @asynccontextmanager
    async def opened_at_home(
        self, name: str, *, makes: Filter | None = None
    ) -> AsyncIterator[tuple[Client, DurableInfo]]:
        """Do what `at_home` does, and say how the durable subscription is."""
        async with AsyncExitStack() as stack:
            try:
                yield await self._opened_at_home(name, makes, stack)
            except InvalidSubscription:
                self._forget_home(name)
                raise

    async def _opened_at_home(
        self, name: str, makes: Filter | None, stack: AsyncExitStack
    ) -> tuple[Client, DurableInfo]:
        address = self._known.get(name) or await self._home_of(name, may_be_old=makes is None)
        if address is not None:
            try:
                return await self._open(name, address, stack)
            except InvalidSubscription:  # it has moved, or ended
                self._forget_home(name)
                address = await self._home_of(name, may_be_old=False)
        if address is None:
            if makes is None:
                raise Problem(404, f"there is no durable subscription {name!r}: give a filter")
            client = await self.connected()
            async with answered_within(self._limits.answer_s):
                info = await client.open_durable(name, makes)
            assert client.broker is not None
            address = self._view.addresses.get(client.broker.short, "")
            if not address:  # only addresses are known
                return client, info
        return await self._open(name, address, stack)

    async def _open(
        self, name: str, address: str, stack: AsyncExitStack
    ) -> tuple[Client, DurableInfo]:
        client = await stack.enter_async_context(self._homes.at(address))
        async with answered_within(self._limits.answer_s):
            info = await client.open_durable(name)
        self._known[name] = address
        return client, info

    async def _home_of(self, name: str, *, may_be_old: bool) -> str | None:
        """Return the address of the broker where a durable subscription lives, if it is there.

        Raises Problem where brokers that may have it do not answer, or where none has a disk.
        """
        try:
            found = await self._durables.get(may_be_old=may_be_old)
        except NotPermitted as failure:
            raise problem_of(failure) from failure
        except InvalidConfiguration as failure:
            raise Problem(409, f"this overlay keeps nothing on disk: {failure}") from failure
        hosted = found.get(name)
        if hosted is None and found.silent:
            silent = " ".join(found.silent)
            raise away(f"{name!r} may live at a broker that does not answer: {silent}")
        return None if hosted is None else self._view.addresses[hosted.host]

    async def _ask_durables(self) -> Found:
        return await ask_durables(
            self._view.addresses, self._limits.patience_s, self.credentials, self._room
        )

    def _forget_home(self, name: str) -> None:
        """Look for a durable subscription anew the next time."""
        self._known.pop(name, None)
        self._durables.forget()
