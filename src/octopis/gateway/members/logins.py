"""Logins at the overlay for whoever comes with a token: not too many, and none again and again.

To brokers all of them come from the gateway's address. So it is here that an address which fails
has to wait, and a token that was refused is not tried again for a while.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from octopis.errors import LoginFailed
from octopis.gateway.problems import Problem
from octopis.security.failures import FailedLogins

REFUSED_S = 5.0
"""So long a token that was refused is refused without asking."""

_REFUSED_MAX = 10_000
_PER_HOST = 8
_AT_ONCE = 32


class Logins:
    """Which logins are under way, and which have failed lately."""

    def __init__(self) -> None:
        self._failures = FailedLogins()
        self._under_way: Counter[str] = Counter()
        self._refused: OrderedDict[bytes, tuple[float, str]] = OrderedDict()

    def check(self, key: bytes, host: str) -> None:
        """Raise Problem where a token was refused lately, or too many logins are under way."""
        until, reason = self._refused.get(key, (0.0, ""))
        if asyncio.get_running_loop().time() < until:
            raise Problem(401, reason)
        if self._under_way[host] >= _PER_HOST or self._under_way.total() >= _AT_ONCE:
            raise Problem(429, "too many logins are under way: try again soon")

    @asynccontextmanager
    async def turn(self, key: bytes, host: str) -> AsyncIterator[None]:
        """Have a login go on meanwhile, after what failures from there make it wait.

        Raises Problem where it fails.
        """
        loop = asyncio.get_running_loop()
        self._under_way[host] += 1
        try:
            await asyncio.sleep(self._failures.delay(host, loop.time()))
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
            raise Problem(401, reason) from None
        finally:
            self._under_way[host] -= 1
            if not self._under_way[host]:
                del self._under_way[host]
