"""Dials a neighbour again and again: of two neighbours, the first in the overlay does."""

import asyncio
import logging

from octopis.broker.connection import Connection
from octopis.broker.link import LinkHome, NeighbourLink
from octopis.client.address import Address, Backoff
from octopis.core.wire.frames import Frame
from octopis.core.wire.greeting import BrokerHello, decode_answer, encode_hello
from octopis.core.wire.link import overlay_digest
from octopis.core.wire.refusals import Refusal
from octopis.errors import ProtocolError

_log = logging.getLogger(__name__)


class Dialler:
    """Keeps one link connected, and is the connection's Peer while the greeting lasts."""

    def __init__(self, home: LinkHome, link: NeighbourLink, address: Address) -> None:
        self.name = str(link.neighbour)
        self._home = home
        self._link = link
        self._address = address
        self._backoff = Backoff(most_s=home.overlay.limits.redial_s_max)
        overlay = home.overlay
        self._hello = BrokerHello(
            home.id, link.neighbour, overlay_digest(overlay.scot), overlay.algorithm.value
        )

    async def run(self) -> None:
        """Dial, wait until the connection is gone, and dial again, until cancelled."""
        loop = asyncio.get_running_loop()
        limits = self._home.overlay.limits
        greets = encode_hello(self._hello)
        failed = False
        while True:
            try:
                async with asyncio.timeout(limits.hello_s):
                    _, connection = await loop.create_connection(
                        lambda: Connection(self, limits, self._home.warnings, greets=greets),
                        *self._address,
                    )
            except (OSError, TimeoutError) as failure:
                if not failed:  # once, not at every try
                    _log.info(
                        "%s: %s cannot be reached at %s yet: %s",
                        self._home.id,
                        self.name,
                        self._address,
                        failure,
                    )
                failed = True
            else:
                failed = False
                try:
                    await connection.closed
                finally:
                    if not connection.closed.done():
                        connection.close("the broker stops")
            await asyncio.sleep(self._backoff.next())

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:
        """Hear the neighbour's answer to our hello."""
        answer = decode_answer(frames[0])
        if isinstance(answer, Refusal):
            self._home.warnings.say(
                asyncio.get_running_loop().time(),
                "refusals",
                "%s: %s refuses the link: %s",
                self._home.id,
                self.name,
                answer.message,
            )
            connection.abort("the link was refused")
            return
        if not isinstance(answer, BrokerHello) or answer.broker != self._link.neighbour:
            raise ProtocolError(f"{self._address} is not {self._link.neighbour}")
        self._backoff.reset()
        self._link.up(connection)
        if len(frames) > 1:
            self._link.frames_arrived(connection, frames[1:])

    def may_write(self, connection: Connection) -> None:
        """Nothing waits during the greeting."""

    def connection_lost(self, connection: Connection, reason: str) -> None:
        """The greeting failed; `run` tries again."""
