"""What a client asks the broker that it is connected to: how it is, and what others know."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from octopis.client.connection import ClientConnection
from octopis.core.wire.client import SETTLED_MS_MAX, SettledRequest, encode_request
from octopis.core.wire.control import StatusRequest, encode_control
from octopis.errors import InvalidConfiguration, NotSettled, OctopisError

SETTLED_S = 10.0
"""How long `settled` waits, unless told otherwise."""

_ANSWER_S = 2.0


class AskingClient(ABC):
    """A client that asks, over whichever connection it has at the moment."""

    @abstractmethod
    async def _open_connection(self) -> ClientConnection:
        """Return a connection, as soon as there is one."""

    @abstractmethod
    def _open_now(self) -> ClientConnection | None:
        """Return the connection, if there is one."""

    _failure: OctopisError | None

    on_goodbye: Callable[[str], None] | None = None
    """Is called with the reason when a broker ends the session, before another one begins."""

    @property
    def failure(self) -> OctopisError | None:
        """Why it has given up, or was closed; None as long as it stays connected, or tries to."""
        return self._failure

    @property
    def is_connected(self) -> bool:
        """Whether a broker takes requests of this client now; else they wait until one does."""
        return self._open_now() is not None

    async def status(self) -> dict[str, Any]:
        """Ask the broker how it is."""
        connection = await self._open_connection()
        found = await connection.ask(lambda request: encode_control(StatusRequest(request)))
        assert isinstance(found, dict)
        return found

    async def settled(self, *, timeout_s: float = SETTLED_S) -> None:
        """Wait until every living broker knows all subscriptions made, or ended, before.

        So what is published after that reaches them. Raises NotSettled, which names the brokers
        that have not confirmed within `timeout_s`.
        """
        limit_ms = round(timeout_s * 1000)
        if not 0 <= limit_ms <= SETTLED_MS_MAX:
            most_s = SETTLED_MS_MAX // 1000
            raise InvalidConfiguration(f"timeout_s is between 0 and {most_s}, not {timeout_s:g}")
        connection = await self._open_connection()
        answer = connection.ask(lambda request: encode_request(SettledRequest(request, limit_ms)))
        try:
            async with asyncio.timeout(timeout_s + _ANSWER_S):
                await answer
        except TimeoutError as failure:
            raise NotSettled from failure
