"""How much of a turn of the event loop each client that publishes may have.

Notifications of one client may cost a thousand times what those of another do: filters search long
texts from end to end, and whoever publishes can have many such filters himself. Nobody knows before
what one will cost, so it is measured:

    a client that is new     has few notifications in a turn, and twice as many each time after
    a turn that took long    raises suspicion against all who were in it: each is alone next time
    a client that is dear    stays alone in its turns, and gets so few that they are short; where
                             a single notification takes long, it also rests as long as that took

And a turn takes in no more text than one value may have, or a single notification: so nobody can
make even the first turn long.
"""

import time
from collections.abc import Callable

from octopis.broker.clients.session import ClientSession
from octopis.core.model.notification import TEXT_LENGTH_MAX
from octopis.core.wire.published import Published

TURN_S = 0.005
"""About so long a turn may take."""

DEAR_S = 0.00025
"""Notifications that take longer than that, each, are dear; plain ones take a tenth of it."""

FIRST = 4
"""Notifications of a new client in its first turn."""

_MOST = 4_096
"""An allowance does not grow further: that is no bound any more."""

_TRUSTED_S = 1.0
"""Who was alone and was not dear is above suspicion while the broker works for so long."""

_LONG_BYTES = 4_096
"""Shorter notifications are not worth counting: what they cost is bounded by their number."""

TEXT_MAX = TEXT_LENGTH_MAX
"""Characters in long notifications that a turn takes in; a single one may have more."""


class Turns:
    """What turns have cost, and what each client may have in the next one.

    `go_on` is called with whoever has rested. `clock` and `call_later` are for tests.
    """

    def __init__(
        self,
        go_on: Callable[[ClientSession], None],
        call_later: Callable[..., object],
        clock: Callable[[], float] = time.thread_time,  # where others have the core, nobody is dear
    ) -> None:
        self._go_on = go_on
        self._call_later = call_later
        self._clock = clock
        self._begin = 0.0
        self._room = TEXT_MAX
        self._taken: dict[ClientSession, int] = {}
        self._allowances: dict[ClientSession, int] = {}
        self._alone: dict[ClientSession, None] = {}
        self._cleared: dict[ClientSession, float] = {}
        self.resting: dict[ClientSession, int] = {}
        """Who may not publish for now, and how many rests are under way."""

    # A turn

    def begin(self) -> None:
        """Begin a turn."""
        self._begin = self._clock()
        self._room = TEXT_MAX
        self._taken = {}

    def may_join(self, session: ClientSession) -> bool:
        """Tell whether a client may be in this turn, or have more of it, after those in it."""
        if not self._taken:
            return True
        if self._room <= 0 or self._taken.get(session, 0) >= self._allowance(session):
            return False
        return session not in self._alone and self._alone.keys().isdisjoint(self._taken)

    def fitting(self, session: ClientSession, part: list[Published]) -> list[Published]:
        """Return as many notifications, from the first on, as the turn may take in."""
        before = self._taken.get(session, 0)
        part = self._with_room(part[: self._allowance(session) - before])
        if part:
            self._taken[session] = before + len(part)
        return part

    def end(self) -> list[ClientSession]:
        """End a turn, and return who rests now."""
        total = sum(self._taken.values())
        if not total:
            return []
        took = self._clock() - self._begin
        each = took / total
        if len(self._taken) == 1:
            return self._judge(next(iter(self._taken)), total, took)
        is_long = took > TURN_S and each > DEAR_S
        for session, count in self._taken.items():
            if not is_long:
                self._let_grow(session, count)
            elif self._cleared.get(session, 0.0) + _TRUSTED_S <= self._begin:
                self._alone[session] = None
            else:
                self._allowances[session] = max(FIRST, int(TURN_S / each))
        return []

    def leave(self, session: ClientSession) -> None:
        """Forget somebody who is gone."""
        self._allowances.pop(session, None)
        self._alone.pop(session, None)
        self._cleared.pop(session, None)
        self.resting.pop(session, None)

    # What is known of clients

    def _judge(self, session: ClientSession, count: int, took: float) -> list[ClientSession]:
        """Note what a client cost that was alone, and return whether it rests."""
        if took / count <= DEAR_S:
            if self._alone.pop(session, 0) is None:
                self._cleared[session] = self._clock()
            self._let_grow(session, count)
            return []
        self._alone[session] = None
        self._allowances[session] = max(1, int(TURN_S * count / took))
        if count > 1 or took <= TURN_S:
            return []
        self.rest(session, took)
        return [session]

    def rest(self, session: ClientSession, seconds: float) -> None:
        """Let a client publish nothing for a while; of several, the longest counts."""
        self.resting[session] = self.resting.get(session, 0) + 1
        self._call_later(seconds, self._has_rested, session)

    def _let_grow(self, session: ClientSession, count: int) -> None:
        allowance = self._allowance(session)
        if count >= allowance < _MOST:
            self._allowances[session] = 2 * allowance

    def _allowance(self, session: ClientSession) -> int:
        return self._allowances.get(session, FIRST)

    def _has_rested(self, session: ClientSession) -> None:
        rests = self.resting.get(session, 0) - 1
        if rests > 0:
            self.resting[session] = rests
        elif not rests:
            del self.resting[session]
            self._go_on(session)

    def _with_room(self, part: list[Published]) -> list[Published]:
        """Return the notifications before the first whose texts are too long for this turn."""
        for number, each in enumerate(part):
            if len(each.encoded) > _LONG_BYTES and (size := _characters(each)) > _LONG_BYTES:
                if size > self._room < TEXT_MAX:  # the first of a turn always fits
                    self._room = 0
                    return part[:number]
                self._room -= size
        return part


def _characters(notification: Published) -> int:
    return sum(len(each) for each in notification.attributes.values() if isinstance(each, str))
