"""Which broker a client dials: the addresses that it was given, in turn."""

import asyncio
from collections.abc import Callable

from octopis.client.address import Backoff, parse_addresses
from octopis.client.connection import ClientConnection, dial
from octopis.errors import ConnectionFailed


class Dialling:
    """The addresses of a client; the first is that of the broker it had, or tries next."""

    def __init__(self, address: str, connect_s: float) -> None:
        self._addresses = parse_addresses(address)
        self._connect_s = connect_s

    def turn(self) -> None:
        """Try the next address from now on."""
        self._addresses.append(self._addresses.pop(0))

    async def first(self, make: Callable[[], ClientConnection]) -> ClientConnection:
        """Return a connection to the first address, or raise ConnectionFailed."""
        return await dial(self._addresses[0], self._connect_s, make)

    async def anywhere(
        self, make: Callable[[], ClientConnection], retry_s: float
    ) -> ClientConnection:
        """Return a connection to the first address that has a broker.

        All are tried in turn, again and again for `retry_s`. Raises ConnectionFailed.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + retry_s
        backoff = Backoff()
        while True:
            failures = []
            for _ in range(len(self._addresses)):
                try:
                    return await self.first(make)
                except ConnectionFailed as failure:
                    failures.append(failure)
                    self.turn()
            if loop.time() >= deadline:
                break
            await asyncio.sleep(min(backoff.next(), max(0.0, deadline - loop.time())))
        if len(failures) == 1:
            raise failures[0]
        raise ConnectionFailed("; ".join(map(str, failures))) from failures[-1]
