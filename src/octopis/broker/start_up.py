"""How a broker starts: it hears of its neighbours before it takes requests."""

import asyncio
import logging
from collections.abc import Callable

from octopis.core.routing import Broker

_log = logging.getLogger(__name__)


class StartUp:
    """The time until a fresh broker knows what its neighbours know; only then it takes requests.

    Where a neighbour is not to be heard within `limit_s`, the broker goes on without it.
    """

    def __init__(self, core: Broker, limit_s: float, then: Callable[[], None]) -> None:
        self.is_over = False
        self.ready = asyncio.Event()
        self._core = core
        self._limit_s = limit_s
        self._then = then
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Begin to wait for the neighbours, if there are any."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._limit_s, self._give_up)
        self.look()

    def look(self) -> None:
        """End the start-up where all neighbours have been heard."""
        if not self.is_over and not self._core.unheard:
            _log.info("%s is ready: it has heard of all neighbours", self._core.id)
            self._end()

    def cancel(self) -> None:
        """Wait no longer: the broker stops."""
        if self._timer is not None:
            self._timer.cancel()

    def _give_up(self) -> None:
        if not self.is_over:
            missing = ", ".join(map(str, self._core.unheard))
            _log.warning("%s goes on without having heard of %s", self._core.id, missing)
            self._end()

    def _end(self) -> None:
        self.is_over = True
        self.ready.set()
        self._then()
