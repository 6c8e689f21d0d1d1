"""A broker's own congestion, and what it hears of that of others.

A queue past its high-water mark makes its broker congested. The broker says so to its neighbours,
they pass it on, and publications wait everywhere until no broker is congested any more.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from octopis.live.configuration import OverlayConfiguration
from octopis.live.link import Link
from octopis.live.notices import Notices
from octopis.model import BrokerId
from octopis.wire.control import Notice

_log = logging.getLogger(__name__)


class Congestion:
    """Notices in and out. `changed` is called when publications may have to wait, or no more."""

    def __init__(
        self,
        broker: BrokerId,
        overlay: OverlayConfiguration,
        links: Mapping[BrokerId, Link],
        first_number: int,
        changed: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._known = frozenset(overlay.scot.brokers)
        self._links = links
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._notices = Notices(broker, first_number, overlay.limits.notice_renewal_s)
        self.outputs: set[object] = set()
        """The own outputs whose queues are congested."""

    @property
    def holds(self) -> bool:
        """Whether any broker is congested, as far as is known here."""
        return self._notices.is_congested

    @property
    def brokers(self) -> list[BrokerId]:
        """The brokers that are congested."""
        return self._notices.congested

    def output_changed(self, output: object, *, congested: bool) -> None:
        """Note that an own queue has passed its high-water mark, or come back."""
        if congested:
            self.outputs.add(output)
        else:
            self.outputs.discard(output)
        self.say()

    def heard(self, neighbour: BrokerId, notice: Notice) -> None:
        """Take a neighbour's notice in, and pass news on."""
        if notice.broker in self._known and self._notices.heard(notice, self._loop.time()):
            self._pass_on(notice, neighbour)
            self._changed()

    def tell(self, neighbour: BrokerId) -> None:
        """Tell a neighbour whose link has come up what holds."""
        for notice in self._notices.holding():
            self._links[neighbour].control(notice)

    def say(self) -> None:
        """Say to all when the own congestion begins, goes on or ends."""
        notice = self._notices.own(congested=bool(self.outputs), now=self._loop.time())
        if notice is not None:
            self._pass_on(notice, None)
            self._changed()

    def expire(self) -> None:
        """Forget brokers of which nothing more is heard."""
        for broker in self._notices.expire(self._loop.time()):
            _log.info("%s: nothing more was heard of congestion at %s", self._broker, broker)
            self._changed()

    def _pass_on(self, notice: Notice, sender: BrokerId | None) -> None:
        for neighbour, link in self._links.items():
            if neighbour != sender:
                link.control(notice)
