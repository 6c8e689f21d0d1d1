"""What brokers say to all others about their queues, each in notices of its own.

A notice names its broker and carries a number that rises, so that it goes round the overlay once
and old news never replaces newer. While it holds, its broker renews it; one that was not renewed
for three times that long is forgotten, as its broker is gone or cannot be reached.

A broker that starts again takes a new incarnation and counts from zero. No clock says which of two
incarnations is the newer: the one that is heard of second is, and the other is dead from then on.
"""

import secrets
from dataclasses import dataclass

from msgspec.structs import replace

from octopis.core.model import BrokerId
from octopis.core.wire.control import Notice

_RENEWALS_MISSED_MAX = 3
_DEAD_MAX = 16
"""Earlier incarnations of a broker that are remembered; what they said is under way no more."""


@dataclass(slots=True)
class _Heard:
    notice: Notice
    at: float
    dead: tuple[str, ...] = ()


def new_incarnation() -> str:
    """Return what no other start of a broker is called."""
    return secrets.token_hex(8)


class Notices:
    """All brokers' notices, the own one among them. Time comes in as an argument."""

    def __init__(self, broker: BrokerId, renewal_s: float, incarnation: str = "") -> None:
        self._broker = broker
        self._renewal_s = renewal_s
        self._own = Notice(broker, incarnation or new_incarnation(), 0, holds=False)
        self._heard: dict[BrokerId, _Heard] = {}

    def holding(self) -> list[Notice]:
        """Return the notices that say that something waits."""
        found = [heard.notice for heard in self._heard.values()]
        return [notice for notice in found if notice.holds or notice.changes]

    @property
    def brokers(self) -> list[BrokerId]:
        """The brokers whose queues of notifications are past their mark."""
        return [notice.broker for notice in self.holding() if notice.holds]

    @property
    def changes(self) -> list[BrokerId]:
        """The brokers at which too many changes of tables wait."""
        return [notice.broker for notice in self.holding() if notice.changes]

    def own(
        self,
        *,
        holds: bool,
        changes: bool = False,
        stuck: tuple[BrokerId, ...] = (),
        slow: tuple[str, ...] = (),
        now: float,
    ) -> Notice | None:
        """Say whether the own queues are past their mark; return the notice to send, if any."""
        said, known = self._own, self._heard.get(self._broker)
        is_same = (holds, changes, stuck, slow) == (
            said.holds,
            said.changes,
            said.stuck,
            said.slow,
        )
        renewed = known is not None and now - known.at < self._renewal_s
        if is_same and (renewed or not (holds or changes)):
            return None
        news = replace(said, holds=holds, changes=changes, stuck=stuck, slow=slow)
        return self._say(news, now)

    def heard(self, notice: Notice, now: float) -> Notice | None:
        """Take a notice in, and return what must be passed on, if it is news.

        What somebody says in the name of this broker, and it has not said itself, is answered by
        a notice of a new incarnation: so nobody else can have the last word about it.
        """
        if notice.broker == self._broker:
            own = self._own
            if notice.incarnation == own.incarnation and notice.number <= own.number:
                return None
            return self._say(replace(own, incarnation=new_incarnation(), number=0), now)
        known = self._heard.get(notice.broker)
        dead: tuple[str, ...] = ()
        if known is not None:
            if notice.incarnation == known.notice.incarnation:
                if notice.number <= known.notice.number:
                    return None
                dead = known.dead
            elif notice.incarnation in known.dead:
                return None
            else:
                dead = (*known.dead, known.notice.incarnation)[-_DEAD_MAX:]
        self._heard[notice.broker] = _Heard(notice, now, dead)
        return notice

    def expire(self, now: float) -> list[BrokerId]:
        """Forget notices that were not renewed, and return whose they were."""
        limit = _RENEWALS_MISSED_MAX * self._renewal_s
        gone = [
            notice.broker
            for notice in self.holding()
            if notice.broker != self._broker and now - self._heard[notice.broker].at > limit
        ]
        for broker in gone:
            heard = self._heard[broker]
            heard.notice = replace(heard.notice, holds=False, changes=False)
        return gone

    def _say(self, notice: Notice, now: float) -> Notice:
        self._own = replace(notice, number=notice.number + 1)
        self._heard[self._broker] = _Heard(self._own, now)
        return self._own
