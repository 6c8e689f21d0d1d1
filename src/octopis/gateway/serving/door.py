"""Takes connections in for a gateway with TLS: handshakes are bounded before HTTP begins."""

import logging
import ssl
from collections.abc import Callable
from socket import socket

from octopis.broker.connection import LogLimit
from octopis.gateway.counts import Counts
from octopis.gateway.serving.protocol import LimitedProtocol
from octopis.gateway.settings import GatewayLimits
from octopis.security.bounds.door import Door
from octopis.security.bounds.strangers import Strangers

_log = logging.getLogger(__name__)


class TlsDoor(Door):
    """Shakes hands with whoever connects, and hands it on to HTTP."""

    def __init__(
        self,
        listens: socket,
        context: ssl.SSLContext,
        make: Callable[[], LimitedProtocol],
        limits: GatewayLimits,
        counts: Counts,
    ) -> None:
        each = limits.half_open_per_host  # so many may come at once, and as many go on
        strangers = Strangers(limits.handshakes_per_s, max(2 * each, limits.handshakes_per_s))
        super().__init__(listens, each, limits.half_open, strangers)
        self._context, self._make = context, make
        self._limits, self._counts = limits, counts
        self._warnings = LogLimit(_log)

    async def _take(self, accepted: socket, host: str) -> None:
        """Shake hands within the time that a head has; HTTP says no to whom it does not want.

        Each handshake counts: here is no login that could tell strangers from others.
        """
        self._strangers.came_to_nothing(host, self._loop.time())
        protocol = self._make()
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.head_s,
                ssl_shutdown_timeout=self._limits.stall_s,  # answers are flushed within it
            )
        except (OSError, TimeoutError):
            self._counts.ended["handshakes"] += 1
        finally:
            if not protocol.is_made:
                accepted.close()

    def _send_away(self, accepted: socket, limit: str, host: str) -> None:
        self._counts.ended["half_open" if limit == "half_open" else "handshakes_per_s"] += 1
        super()._send_away(accepted, limit, host)

    def _say(self, kind: str, message: str, *facts: object) -> None:
        """Say what is no fault of clients: theirs are counted."""
        if kind == "accepting":
            self._warnings.say(self._loop.time(), kind, message, *facts)
