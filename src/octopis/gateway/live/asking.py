"""Asks brokers how they are, again and again, over connections that stay."""

import asyncio
import contextlib
import logging
from typing import Any

from octopis.client.client import Client
from octopis.client.credentials import Given
from octopis.errors import LoginFailed, NotPermitted, OctopisError

_ANSWER_S = 1.5
_CONNECT_S = 1.0
_log = logging.getLogger(__name__)


class Watched:
    """One broker: the client that asks it, and what it said last."""

    def __init__(self, name: str, address: str, credentials: Given = None) -> None:
        self.name = name
        self.status: dict[str, Any] | None = None
        """What it said last; None while it does not answer."""

        self.before: dict[str, Any] | None = None
        """What it said the time before."""

        self.at = self.before_at = 0.0
        self._address = address
        self._credentials = credentials
        self._is_refused = False
        self._client: Client | None = None

    async def ask(self) -> None:
        """Ask it, and note what it says."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_ANSWER_S):
                if self._client is None:
                    client = Client(
                        f"octopis://{self._address}",
                        connect_s=_CONNECT_S,
                        reconnect_s=0,
                        observer=True,
                        credentials=self._credentials,
                    )
                    await client.open()
                    self._client = client
                found = await self._client.status()
        except (OctopisError, TimeoutError) as failure:
            self._warn(failure)
            await self.close()
            self.status = self.before = None
            return
        self.before, self.before_at = self.status, self.at
        self.status, self.at = found, loop.time()

    def _warn(self, failure: Exception) -> None:
        """Say once that a broker refuses: else it only seems to be dead."""
        if isinstance(failure, LoginFailed | NotPermitted) and not self._is_refused:
            self._is_refused = True
            _log.warning("%s does not say how it is: %s", self.name, failure)

    async def close(self) -> None:
        """Let the connection go."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OctopisError):  # it is broken already
                await client.close()
