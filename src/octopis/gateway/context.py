"""What all doors share: limits, members, counts, and the order to end."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar

from octopis.gateway.bodies import Scope
from octopis.gateway.counts import Counts
from octopis.gateway.members.member import Member
from octopis.gateway.members.membership import Members
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem
from octopis.gateway.readers.reader import Reader
from octopis.gateway.security import EXPIRED, token_of
from octopis.gateway.settings import GatewayLimits, GatewayOptions
from octopis.security.bounds.failures import ADDRESSES_MAX, place_of
from octopis.security.bounds.shares import Shares

_Holder = TypeVar("_Holder", str, Member)


@dataclass
class Context:
    """One gateway, as its doors see it."""

    view: OverlayView
    options: GatewayOptions
    counts: Counts
    members: Members
    readers: set[Reader] = field(default_factory=set)
    is_ending: bool = False

    def __post_init__(self) -> None:
        limits = self.options.limits
        self.rates = Rates(limits.rate_per_s)
        self._of_hosts: Shares[str] = Shares(limits.streams_per_host, limits.streams)
        self._of_tokens: Shares[Member] = Shares(limits.streams_per_token, limits.streams)

    @property
    def limits(self) -> GatewayLimits:
        """The limits."""
        return self.options.limits

    @property
    def is_secure(self) -> bool:
        """Whether the overlay has security: then everybody says who it is."""
        return self.view.security is not None

    @asynccontextmanager
    async def member(
        self, scope: Scope, reader: Reader | None = None, token: str = ""
    ) -> AsyncIterator[Member]:
        """Use the member of who makes a request, whose reader ends with the member.

        The token is that of the head, unless it was said otherwise. Raises Problem where it is not
        right, and for readers of an address or a token that has too many.
        """
        place = _place_of(scope)
        with ExitStack() as held:
            if reader is not None:
                held.enter_context(self._stream(self._of_hosts, place, "streams_per_host"))
            member = await self.members.of(token or token_of(scope), place)
            if reader is not None and self.is_secure:
                held.enter_context(self._stream(self._of_tokens, member, "streams_per_token"))
            held.enter_context(member.used(reader))
            try:
                yield member
            except Problem as problem:
                if not (member.is_expired and problem.status == HTTPStatus.SERVICE_UNAVAILABLE):
                    raise
                done = problem.document.accepted
                raise Problem(401, EXPIRED, accepted=done, closes=problem.closes) from None

    @asynccontextmanager
    async def onlooker(self, scope: Scope, reader: Reader | None = None) -> AsyncIterator[Member]:
        """Use the member of who makes a request about how the overlay is, if its role may."""
        async with self.member(scope, reader) as member:
            await member.check_status()
            yield member

    @contextmanager
    def _stream(self, shares: Shares[_Holder], holder: _Holder, limit: str) -> Iterator[None]:
        """Have a stream meanwhile, or raise Problem where its holder has too many."""
        if shares.is_full(holder):
            self.counts.ended[limit] += 1
            whose = "address" if limit == "streams_per_host" else "token"
            reason = f"there are {shares.of(holder):,} subscribers of your {whose}: end some"
            raise Problem(429, reason)
        with shares.held(holder):
            yield

    @contextmanager
    def reader(self, door: str) -> Iterator[Reader]:
        """Have a reader meanwhile, or raise Problem where there are too many."""
        if self.is_ending:
            raise Problem(503, "the gateway is stopping")
        if len(self.readers) >= self.limits.streams:
            self.counts.ended["streams"] += 1
            raise Problem(503, f"there are {self.limits.streams:,} subscribers already: try later")
        reader = Reader(self.limits, self.options.slow)
        self.readers.add(reader)
        self.counts.streams[door] += 1
        try:
            yield reader
        finally:
            self.readers.discard(reader)
            self.counts.streams[door] -= 1
            self.counts.dropped[door] += reader.dropped


class Rates:
    """What each address may do in a second: a bucket for each, which fills all the time."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, scope: Scope, count: int = 1) -> bool:
        """Tell whether the address of a request may do that much now; if so, it is taken.

        What comes together is taken together, also where it is more than there is left: then
        nothing more is taken until that is made up for.
        """
        host, left, now = self._bucket(scope)
        may = left >= 1
        self._buckets[host] = (left - count if may else left, now)
        self._buckets.move_to_end(host)
        if len(self._buckets) > ADDRESSES_MAX:  # whoever has been away for longest has a full one
            self._buckets.popitem(last=False)
        return may

    async def wait(self, scope: Scope, count: int) -> bool:
        """Take that much as soon as it may be; tell whether it had to wait."""
        has_waited = False
        while not self.take(scope, count):
            has_waited = True
            _, left, _ = self._bucket(scope)
            await asyncio.sleep((1 - left) / self._per_s)
        return has_waited

    def _bucket(self, scope: Scope) -> tuple[str, float, float]:
        """Return an address, what it has left, and the time."""
        host = _place_of(scope)
        now = asyncio.get_running_loop().time()
        left, at = self._buckets.get(host, (float(self._per_s), now))
        return host, min(float(self._per_s), left + (now - at) * self._per_s), now


def _place_of(scope: Scope) -> str:
    """Return what a request is counted by: the address that it comes from."""
    client = scope.get("client")
    return place_of(client[0]) if client else ""
