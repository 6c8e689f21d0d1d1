"""Backpressure: publications wait everywhere while a queue anywhere is past its high-water mark.

And changes of subscriptions wait while too many changes of tables wait for a link anywhere.

The broker whose queue it is says so to its neighbours by a notice, and they pass it on. A notice
names its broker and carries a number that rises, so that it goes round the overlay once and old
news never replaces newer. While it holds, its broker renews it; one that was not renewed for three
times that long is forgotten, as its broker is gone or cannot be reached.

A broker that starts again takes a new incarnation and counts from zero. No clock says which of two
incarnations is the newer: the one that is heard of second is, and the other is dead from then on.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from octopis.broker.settings import OverlayConfiguration
from octopis.core.model import BrokerId
from octopis.core.wire.control import Notice
from octopis.errors import ProtocolError

_RENEWALS_MISSED_MAX = 3
_DEAD_MAX = 16
"""Earlier incarnations of a broker that are remembered; what they said is under way no more."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Heard:
    incarnation: str
    number: int
    holds: bool
    changes: bool
    at: float
    dead: tuple[str, ...] = ()


def new_incarnation() -> str:
    """Return what no other start of a broker is called."""
    return secrets.token_hex(8)


class Notices:
    """All brokers' notices, the own one among them. Time comes in as an argument."""

    def __init__(self, broker: BrokerId, renewal_s: float, incarnation: str = "") -> None:
        self._broker = broker
        self._incarnation = incarnation or new_incarnation()
        self._number = 0
        self._renewal_s = renewal_s
        self._heard: dict[BrokerId, _Heard] = {}

    @property
    def brokers(self) -> list[BrokerId]:
        """The brokers whose notices hold."""
        return [broker for broker, heard in self._heard.items() if heard.holds]

    @property
    def changes(self) -> list[BrokerId]:
        """The brokers at which too many changes of tables wait."""
        return [broker for broker, heard in self._heard.items() if heard.changes]

    def own(self, *, holds: bool, changes: bool = False, now: float) -> Notice | None:
        """Say whether the own queues are past their mark; return the notice to send, if any."""
        known = self._heard.get(self._broker)
        said = (False, False) if known is None else (known.holds, known.changes)
        renewed = known is not None and now - known.at < self._renewal_s
        if (holds, changes) == said and (renewed or not (holds or changes)):
            return None
        return self._say(holds=holds, changes=changes, now=now)

    def heard(self, notice: Notice, now: float) -> Notice | None:
        """Take a notice in, and return what must be passed on, if it is news.

        What somebody says in the name of this broker, and it has not said itself, is answered by
        a notice of a new incarnation: so nobody else can have the last word about it.
        """
        if notice.broker == self._broker:
            if notice.incarnation == self._incarnation and notice.number <= self._number:
                return None
            known = self._heard.get(self._broker)
            self._incarnation, self._number = new_incarnation(), 0
            if known is None:
                return self._say(holds=False, changes=False, now=now)
            return self._say(holds=known.holds, changes=known.changes, now=now)
        known = self._heard.get(notice.broker)
        dead: tuple[str, ...] = ()
        if known is not None:
            if notice.incarnation == known.incarnation:
                if notice.number <= known.number:
                    return None
                dead = known.dead
            elif notice.incarnation in known.dead:
                return None
            else:
                dead = (*known.dead, known.incarnation)[-_DEAD_MAX:]
        self._heard[notice.broker] = _Heard(
            notice.incarnation, notice.number, notice.holds, notice.changes, now, dead
        )
        return notice

    def _say(self, *, holds: bool, changes: bool, now: float) -> Notice:
        self._number += 1
        self._heard[self._broker] = _Heard(self._incarnation, self._number, holds, changes, now)
        return Notice(self._broker, self._incarnation, self._number, holds, changes)

    def expire(self, now: float) -> list[BrokerId]:
        """Forget notices that were not renewed, and return whose they were."""
        limit = _RENEWALS_MISSED_MAX * self._renewal_s
        gone = [
            broker
            for broker, heard in self._heard.items()
            if (heard.holds or heard.changes) and broker != self._broker and now - heard.at > limit
        ]
        for broker in gone:
            self._heard[broker].holds = self._heard[broker].changes = False
        return gone

    def holding(self) -> list[Notice]:
        """Return the notices that hold, for a neighbour whose link has come up."""
        return [
            Notice(broker, heard.incarnation, heard.number, heard.holds, heard.changes)
            for broker, heard in self._heard.items()
            if heard.holds or heard.changes
        ]


class NoticeOutput(Protocol):
    """A link, as far as notices go."""

    def control(self, message: Notice) -> None:
        """Send a notice past the queue."""


class Backpressure:
    """Notices in and out. `changed` is called when publications may have to wait, or no more."""

    def __init__(
        self,
        broker: BrokerId,
        overlay: OverlayConfiguration,
        links: Mapping[BrokerId, NoticeOutput],
        changed: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._known = frozenset(overlay.scot.brokers)
        self._links = links
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._notices = Notices(broker, overlay.limits.notice_renewal_s)
        self.outputs: set[object] = set()
        """The own links and clients whose queues are past their high-water mark."""

        self.change_outputs: set[object] = set()
        """The own links for which too many changes of tables wait."""

        self.brokers: list[BrokerId] = []
        """The brokers whose notices hold, as far as is known here: publications wait for them."""

        self.change_brokers: list[BrokerId] = []
        """The brokers at which too many changes wait: changes of subscriptions wait for them."""

    def output_changed(self, output: object, begins: bool) -> None:
        """Note that an own queue has passed its high-water mark, or come back."""
        if begins:
            self.outputs.add(output)
        else:
            self.outputs.discard(output)
        self.say()

    def changes_changed(self, output: object, begins: bool) -> None:
        """Note that too many changes wait for an own link, or no more."""
        if begins:
            self.change_outputs.add(output)
        else:
            self.change_outputs.discard(output)
        self.say()

    def heard(self, neighbour: BrokerId, notice: Notice) -> None:
        """Take a neighbour's notice in, and pass news on. Raises ProtocolError."""
        if notice.broker not in self._known:
            raise ProtocolError(f"a notice is about {notice.broker}, which is not in this overlay")
        news = self._notices.heard(notice, self._loop.time())
        if news is not None:
            self._pass_on(news, neighbour if news is notice else None)
            self._look()

    def tell(self, neighbour: BrokerId) -> None:
        """Tell a neighbour whose link has come up what holds."""
        for notice in self._notices.holding():
            self._links[neighbour].control(notice)

    def say(self) -> None:
        """Say to all when the own backpressure begins, goes on or ends."""
        notice = self._notices.own(
            holds=bool(self.outputs), changes=bool(self.change_outputs), now=self._loop.time()
        )
        if notice is not None:
            self._pass_on(notice, None)
            self._look()

    def expire(self) -> None:
        """Forget brokers of which nothing more is heard."""
        for broker in self._notices.expire(self._loop.time()):
            _log.info("%s: nothing more was heard of backpressure at %s", self._broker, broker)
            self._look()

    def _look(self) -> None:
        self.brokers = self._notices.brokers
        self.change_brokers = self._notices.changes
        self._changed()

    def _pass_on(self, notice: Notice, sender: BrokerId | None) -> None:
        for neighbour, link in self._links.items():
            if neighbour != sender:
                link.control(notice)
