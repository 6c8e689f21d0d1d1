"""All who use the gateway: one member for everybody, or with security one for each token.

Members by token are bounded, the one that nobody has used for longest goes first. Each ends with
its token. Nothing here keeps a token but the client that logs in with it.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict

from octopis.errors import LoginFailed, OctopisError
from octopis.gateway.members.homes import FOR_EVER_S
from octopis.gateway.members.logins import Logins
from octopis.gateway.members.member import Member
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem, away
from octopis.gateway.security import EXPIRED, expiry_of
from octopis.gateway.settings import GatewayLimits
from octopis.overlay.asking import AT_ONCE

_AWAY = (OctopisError, TimeoutError)


class Members:
    """Finds who asks, and lets those go who are not needed any more."""

    def __init__(self, view: OverlayView, limits: GatewayLimits) -> None:
        self._view, self._limits = view, limits
        self._room = asyncio.Semaphore(AT_ONCE)
        """Connections over which brokers are asked, for all members together."""

        self._anybody: Member | None = None
        self._members: OrderedDict[bytes, Member] = OrderedDict()
        self._logins = Logins(limits)
        self._under_way: dict[bytes, asyncio.Task[Member]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def anybody(self) -> Member:
        """Return the member of everybody, of an overlay without security."""
        assert self._view.security is None, "with security everybody says who it is"
        if self._anybody is None:
            self._anybody = Member(self._view, self._limits, self._room)
        return self._anybody

    async def of(self, token: str, host: str) -> Member:
        """Return who has a token, or raise Problem. `host` is from where it comes."""
        if self._view.security is None:
            return self.anybody()
        key = hashlib.sha256(token.encode()).digest()
        member = self._members.get(key)
        if member is not None:
            if member.failure is None and not member.is_over:
                self._members.move_to_end(key)
                return member
            self._let_go(key)
        login = self._under_way.get(key)
        if login is None:
            expires_at = expiry_of(token)
            self._logins.check(key, host)
            login = asyncio.create_task(self._log_in(key, token, host, expires_at))
            self._under_way[key] = login
            login.add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(login)

    def __len__(self) -> int:
        return len(self._members)

    async def close(self) -> None:
        """End all."""
        for login in list(self._under_way.values()):
            login.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        for key in list(self._members):
            self._let_go(key)
        await asyncio.gather(*self._closing)
        if self._anybody is not None:
            await self._anybody.close()

    async def _log_in(self, key: bytes, token: str, host: str, expires_at: float) -> Member:
        assert self._view.security is not None, "only then there are tokens"
        async with self._logins.turn(key, host):
            credentials = self._view.security.of(token)
            member = Member(self._view, self._limits, self._room, credentials)
            try:
                await member.opened()
                self._make_room()
            except BaseException as failure:
                self._close(member)
                if isinstance(failure, LoginFailed) or not isinstance(failure, _AWAY):
                    raise
                raise away(str(failure) or "no broker answers") from failure
        self._members[key] = member
        left_s = min(max(0.0, expires_at - time.time()), FOR_EVER_S)
        loop = asyncio.get_running_loop()
        member.ends = loop.call_later(left_s, self._expire, key, member)
        return member

    def _expire(self, key: bytes, member: Member) -> None:
        if self._members.get(key) is member:
            member.expire(EXPIRED)
            self._let_go(key)

    def _make_room(self) -> None:
        most = self._limits.members
        if len(self._members) < most:
            return
        idle = next((key for key, each in self._members.items() if not each.users), None)
        if idle is None:
            raise Problem(503, f"{most:,} tokens are in use already: try later")
        self._let_go(idle)

    def _let_go(self, key: bytes) -> None:
        self._close(self._members.pop(key))

    def _close(self, member: Member) -> None:
        task = asyncio.create_task(member.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
