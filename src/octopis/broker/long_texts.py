"""Publications with long texts: few of them in a turn, and their clients rest if that took long.

Filters may search a text from end to end, many times, and one client can have both many such
filters and long texts for them. So a turn of the event loop takes in no more text than one value
may have, or a single notification; and whoever has published it waits as long as the turn took
before it may go on. Meanwhile everybody else has the broker for himself.
"""

import time
from collections.abc import Callable

from octopis.broker.pace import SLICE_S
from octopis.broker.session import ClientSession
from octopis.core.model.notification import TEXT_LENGTH_MAX
from octopis.core.wire.published import Published

_LONG_BYTES = 4_096
"""Shorter notifications are not worth counting: what they cost is bounded by their number."""

AT_ONCE_MAX = TEXT_LENGTH_MAX
"""Characters in long notifications that a turn takes in; a single one may have more."""


class LongTexts:
    """What a turn may still take in, and who rests. `clock` and `call_later` are for tests.

    `go_on` is called with whoever has rested.
    """

    def __init__(
        self,
        go_on: Callable[[ClientSession], None],
        call_later: Callable[..., object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._go_on = go_on
        self._call_later = call_later
        self._clock = clock
        self._begin = 0.0
        self._room = AT_ONCE_MAX
        self._sessions: dict[ClientSession, None] = {}
        self.resting: dict[ClientSession, None] = {}
        """Who may not publish for now."""

    def begin(self) -> None:
        """Begin a turn."""
        self._begin = self._clock()
        self._room = AT_ONCE_MAX

    @property
    def has_room(self) -> bool:
        """Whether the turn may take in more."""
        return self._room > 0

    def fitting(self, session: ClientSession, part: list[Published]) -> list[Published]:
        """Return as many notifications, from the first on, as the turn may take in."""
        for number, each in enumerate(part):
            if len(each.encoded) > _LONG_BYTES and (size := _characters(each)) > _LONG_BYTES:
                if size > self._room < AT_ONCE_MAX:  # the first of a turn always fits
                    self._room = 0
                    return part[:number]
                self._sessions[session] = None
                self._room -= size
        return part

    def end(self) -> list[ClientSession]:
        """End a turn, and return who rests now: whoever published long texts, if it took long."""
        if not self._sessions:
            return []
        took = self._clock() - self._begin
        sessions, self._sessions = list(self._sessions), {}
        if took <= SLICE_S:
            return []
        for session in sessions:
            self.resting[session] = None
            self._call_later(took, self._has_rested, session)
        return sessions

    def leave(self, session: ClientSession) -> None:
        """Forget somebody who is gone."""
        self.resting.pop(session, None)

    def _has_rested(self, session: ClientSession) -> None:
        if session in self.resting:
            del self.resting[session]
            self._go_on(session)


def _characters(notification: Published) -> int:
    return sum(len(each) for each in notification.attributes.values() if isinstance(each, str))
