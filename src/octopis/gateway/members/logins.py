"""Logins at the overlay for whoever comes with a token: not too many, and none again and again.

To brokers all of them come from the gateway's address; who has a right token they let in at once,
and others they answer late. So it is here that an address which fails is told from the rest: it
hears of it late, has few logins at a time, and these have little time. A right token needs no more.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from octopis.errors import LoginFailed
from octopis.gateway.problems import Problem
from octopis.gateway.settings import GatewayLimits
from octopis.security.bounds.failures import FailedLogins, place_of
from octopis.security.bounds.shares import Shares

REFUSED_S = 5.0
"""So long a token that was refused is refused without asking."""

AFTER_FAILURES = 2
"""So many logins at a time has an address whose logins have failed lately."""

_AFTER_FAILURES_S = 2.0
"""And so long has each of them: brokers let right tokens in at once, and answer late to others."""

_REFUSED_MAX = 10_000


class Logins:
    """Which logins are under way, and which have failed lately."""

    def __init__(self, limits: GatewayLimits) -> None:
        self._failures = FailedLogins()
        self._under_way: Shares[str] = Shares(limits.logins_per_host, limits.logins)
        self._refused: OrderedDict[bytes, tuple[float, str]] = OrderedDict()

    def check(self, key: bytes, host: str) -> None:
        """Raise Problem where a token was refused lately, or too many logins are under way."""
        until, reason = self._refused.get(key, (0.0, ""))
        now = asyncio.get_running_loop().time()
        if now < until:
            raise Problem(401, reason)
        place = place_of(host)
        has_failed = self._failures.delay(place, now) > 0
        is_full = has_failed and self._under_way.of(place) >= AFTER_FAILURES
        if is_full or self._under_way.is_full(place):
            raise Problem(429, "too many logins are under way: try again soon")

    @asynccontextmanager
    async def turn(self, key: bytes, host: str) -> AsyncIterator[None]:
        """Have a login go on meanwhile.

        Raises Problem where it fails: as late as earlier failures from there make it, when it is
        under way no more.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        wait_s = self._failures.delay(host, began)
        try:
            with self._under_way.held(place_of(host)):
                async with asyncio.timeout(_AFTER_FAILURES_S if wait_s else None) as bound:
                    yield
        except LoginFailed as failure:
            if isinstance(failure.__cause__, OSError):  # TLS: it is the broker that is not trusted
                raise Problem(502, f"the gateway does not reach the overlay: {failure}") from None
            reason = str(failure.__cause__ or failure)
            now = loop.time()
            self._failures.failed(host, now)
            self._refused[key] = now + REFUSED_S, reason
            if len(self._refused) > _REFUSED_MAX:
                self._refused.popitem(last=False)
            await asyncio.sleep(began + wait_s - now)
            raise Problem(401, reason) from None
        except TimeoutError:
            if not bound.expired():
                raise
            self._failures.failed(host, loop.time())
            reason = (
                "logins from your address have failed lately, and no broker has let this one in "
                f"within {_AFTER_FAILURES_S:g} s: try again soon"
            )
            raise Problem(429, reason) from None
