"""WebSockets to a gateway, by a client that nobody here wrote."""

import asyncio
import json
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from support.gateway import Gateway


class Socket:
    """A WebSocket, with the messages that have come."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._messages: list[dict[str, Any]] = []

    async def say(self, *messages: Any) -> None:
        await self.connection.send(json.dumps(messages[0] if len(messages) == 1 else messages))

    async def next(self, limit_s: float = 10.0) -> dict[str, Any]:
        while not self._messages:
            async with asyncio.timeout(limit_s):
                self._messages = json.loads(await self.connection.recv())
        return self._messages.pop(0)

    async def take(self, count: int) -> list[dict[str, Any]]:
        return [await self.next() for _ in range(count)]


def on_socket(gateway: Gateway, use: Any) -> None:
    async def run() -> None:
        async with connect(f"ws://{gateway.address}/ws") as connection:
            await use(Socket(connection))

    asyncio.run(run())
