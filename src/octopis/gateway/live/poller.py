"""The one poller of a gateway: it asks brokers as long as anybody looks, and seldom else.

With many brokers each is asked in its turn, so that asking never takes more than a share of their
time, or of ours.
"""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from octopis.gateway.live.asking import Watched
from octopis.gateway.live.changes import Changes, Events
from octopis.gateway.live.pulse import LiveEvent, Pulse, pulse_of
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem

PULSE_S = 0.5
IDLE_S = 5.0
"""How often brokers are asked while nobody looks, so that the last events are there."""

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class Poller:
    """Asks all brokers; `looking` gives pulses."""

    def __init__(self, view: OverlayView, polls_per_s: int) -> None:
        own = None if view.security is None else view.security.own
        self._watched = [Watched(name, address, own) for name, address in view.addresses.items()]
        self._may_ask = view.security is None or own is not None
        self._per_pulse = max(1, round(polls_per_s * PULSE_S))
        self._next = 0
        self._neighbours: dict[str, list[str]] = {}
        if view.overlay is not None:
            scot = view.overlay.configuration.scot
            self._neighbours = {
                each.short: [other.short for other in scot.neighbours(each)]
                for each in scot.brokers
            }
        self._asking: dict[Watched, asyncio.Task[None]] = {}
        self._events = Events()
        self._changes = Changes(self._events)
        self._onlookers = 0
        self._called = asyncio.Event()
        self._beat: asyncio.Future[None] | None = None
        self.has_failed = False
        """Whether it cannot go on: an answer of a broker made no sense."""

        self._task: asyncio.Task[None] | None = None
        self._pulse: Pulse | None = None
        self._encoded = b""

    def start(self) -> None:
        """Begin to ask, if it can."""
        if not self._may_ask:
            return
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._ended)

    def check(self) -> None:
        """Raise Problem where it cannot ask."""
        if self.has_failed:
            raise Problem(500, "the gateway cannot look how brokers are: its log has more")
        if not self._may_ask:
            raise Problem(
                503,
                "this gateway has no credentials with which to look how brokers are: start it with "
                "--credentials FILE, of a role with status = true",
            )

    async def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            for task in (self._task, *self._asking.values()):
                task.cancel()
            await asyncio.gather(self._task, *self._asking.values(), return_exceptions=True)
        await asyncio.gather(*(each.close() for each in self._watched))

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Have brokers asked often meanwhile."""
        self._onlookers += 1
        self._called.set()
        try:
            yield
        finally:
            self._onlookers -= 1

    @property
    def events(self) -> int:
        """How many events there were so far."""
        return self._events.last

    async def first(self) -> None:
        """Wait until brokers were asked at all."""
        while self._pulse is None and not self.has_failed:
            await self.beat()

    async def beat(self) -> None:
        """Wait for the next pulse."""
        if self._beat is None or self._beat.done():
            self._beat = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._beat)

    def pulse(self, after: int) -> bytes:
        """Return the last pulse as JSON, with the events after a number that are kept."""
        assert self._pulse is not None, "the first one is waited for"
        if not self._encoded:
            # It ends with the events, which are different for everyone: [] and a brace.
            self._encoded = _encode(self._pulse)[:-3]
        return self._encoded + _encode(self.events_after(after)) + b"}"

    def events_after(self, number: int) -> list[LiveEvent]:
        """Return the events after a number that are kept."""
        return self._events.since(number)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self._ask_some()
            at_ms = time.time_ns() // 10**6
            self._pulse = pulse_of(at_ms, self._watched, self._neighbours)
            self._encoded = b""
            if self._beat is not None and not self._beat.done():
                self._beat.set_result(None)
            if self._onlookers:
                await asyncio.sleep(max(0.05, began + PULSE_S - loop.time()))
                continue
            self._called.clear()
            try:
                async with asyncio.timeout(IDLE_S):
                    await self._called.wait()
            except TimeoutError:
                continue

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """End streams of pulses aloud: a picture that stands still would look live."""
        if task.cancelled() or (failure := task.exception()) is None:
            return
        _log.error("what brokers say of themselves cannot be shown any more", exc_info=failure)
        self.has_failed = True
        if self._beat is not None and not self._beat.done():
            self._beat.set_result(None)

    async def _ask_some(self) -> None:
        """Ask those whose turn it is: all, unless they are too many."""
        count = len(self._watched)
        turn = [self._watched[(self._next + n) % count] for n in range(min(count, self._per_pulse))]
        if self._pulse is None:
            turn = self._watched  # the first pulse has them all
        self._next = (self._next + len(turn)) % count
        for each in turn:
            if each not in self._asking:  # else it is slow to answer
                self._asking[each] = asyncio.create_task(each.ask())
        # The first pulse waits for all; later ones for nobody who takes longer than that.
        limit_s = None if self._pulse is None else 0.8 * PULSE_S
        await asyncio.wait(self._asking.values(), timeout=limit_s)
        at_ms = time.time_ns() // 10**6
        for each, task in list(self._asking.items()):
            if task.done():
                del self._asking[each]
                task.result()
                self._changes.look(each, at_ms)
