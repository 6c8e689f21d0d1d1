"""Which broker a client dials: the addresses that it was given, in turn."""

import asyncio
from collections.abc import Callable
from functools import partial

from octopis.client.address import Backoff, parse_addresses, user_of
from octopis.client.connection import ClientConnection, dial
from octopis.client.credentials import Given, secured
from octopis.client.login import Login
from octopis.errors import ConnectionFailed, LoginFailed

Make = Callable[[Login], ClientConnection]
"""Makes a connection that greets with a login."""


class Dialling:
    """The addresses of a client; the first is that of the broker it had, or tries next."""

    def __init__(self, address: str, connect_s: float, credentials: Given = None) -> None:
        self._addresses = parse_addresses(address)
        self._connect_s = connect_s
        self._secured = secured(credentials, user_of(address))

    def turn(self) -> None:
        """Try the next address from now on."""
        self._addresses.append(self._addresses.pop(0))

    async def first(self, make: Make) -> ClientConnection:
        """Return a connection to the first address, or raise ConnectionFailed.

        Credentials are read now: what they say may have changed since the last one.
        """
        if self._secured is None:
            return await dial(self._addresses[0], self._connect_s, partial(make, Login()))
        credentials = self._secured.now()
        made = partial(make, credentials.login())
        return await dial(self._addresses[0], self._connect_s, made, credentials.context())

    async def anywhere(self, make: Make, retry_s: float) -> ClientConnection:
        """Return a connection to the first address that has a broker.

        All are tried in turn, again and again for `retry_s`. Raises ConnectionFailed; LoginFailed
        at once, as the same credentials fail again.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + retry_s
        backoff = Backoff()
        while True:
            failures = []
            for _ in range(len(self._addresses)):
                try:
                    return await self.first(make)
                except LoginFailed:
                    raise
                except ConnectionFailed as failure:
                    failures.append(failure)
                    self.turn()
            if loop.time() >= deadline:
                break
            await asyncio.sleep(min(backoff.next(), max(0.0, deadline - loop.time())))
        if len(failures) == 1:
            raise failures[0]
        raise ConnectionFailed("; ".join(map(str, failures))) from failures[-1]
