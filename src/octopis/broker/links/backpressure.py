"""Backpressure: publications wait while a queue on their way is past its high-water mark.

The broker whose queue it is says so by a notice, which the others pass on. It names the links that
are stuck, and the broker itself where a subscriber of its own is. By the overlay's structure a host
of publishers knows which hosts lie behind them: what goes to one of these waits, and nothing else.
(BID's trees are known only where they grow: there every publication waits.) Target routing goes
around a link long before it is so full; where it could not, what has the link on a shortest way
waits.

With channels (octopis.core.delivery) nobody waits for a link. Publications wait for hosts that lack
a window of what was sent to them, as the publisher's own host knows; and, where the policy for slow
subscribers is to pause, for those whose notices name them: so only what is for them waits.

Changes of subscriptions wait while too many changes of tables wait for a link anywhere: they go
everywhere.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from octopis.broker.links.notices import Notices
from octopis.broker.settings import OverlayConfiguration
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.table import Entry
from octopis.core.topology import SCOT
from octopis.core.wire.control import Notice
from octopis.errors import ProtocolError

_log = logging.getLogger(__name__)


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
        self._scot = overlay.scot
        self._known = frozenset(overlay.scot.brokers)
        algorithm = overlay.routing.algorithm
        self._is_by_structure = algorithm is not Algorithm.BID
        self._behind = targets_behind if algorithm is Algorithm.TNR else hosts_behind
        self._links = links
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._notices = Notices(broker, overlay.limits.notice_renewal_s)
        self.outputs: set[object] = set()
        """The own links and clients whose queues are past their high-water mark."""

        self.change_outputs: set[object] = set()
        """The own links for which too many changes of tables wait."""

        self.brokers: list[BrokerId] = []
        """The brokers whose notices hold, as far as is known here."""

        self.held: frozenset[BrokerId] = frozenset()
        """The hosts to which nothing goes from here for now."""

        self.held_for_batches: frozenset[BrokerId] = frozenset()
        """The same for committed batches, which have some room on disk for themselves."""

        self.paused: frozenset[str] = frozenset()
        """The owners of subscriptions whose clients are too slow, where publishers wait for them
        alone."""

        self.version = 0
        """Rises when any of this changes."""

        self._has_channels = overlay.has_channels
        self._windows: frozenset[BrokerId] = frozenset()
        self._lacking: frozenset[BrokerId] = frozenset()

        self.change_brokers: list[BrokerId] = []
        """The brokers at which too many changes wait: changes of subscriptions wait for them."""

    @property
    def holds(self) -> bool:
        """Whether any publication may have to wait."""
        return bool(self.held or self.paused)

    def is_held(self, entry: Entry) -> bool:
        """Tell whether what matches an entry has to wait."""
        return entry.host in self.held or entry.subscription.owner in self.paused

    def is_held_for_batches(self, entry: Entry) -> bool:
        """Tell whether what matches an entry has to wait, in a committed batch."""
        return entry.host in self.held_for_batches or entry.subscription.owner in self.paused

    def windows_changed(self, hosts: int, lacking: int) -> None:
        """Note for which hosts, as bits, publishers wait; they are `lacking` a window, or more."""
        self._windows = frozenset(self._scot.brokers_in(hosts))
        self._lacking = frozenset(self._scot.brokers_in(lacking))
        self._look()

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
        if not self._known.issuperset((notice.broker, *notice.stuck)):
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
        stuck: set[BrokerId] = set()
        slow: set[str] = set()
        if self._has_channels:
            slow = {getattr(output, "owner", "") for output in self.outputs}
        else:
            stuck = {getattr(output, "neighbour", self._broker) for output in self.outputs}
        notice = self._notices.own(
            holds=bool(self.outputs),
            changes=bool(self.change_outputs),
            stuck=tuple(sorted(stuck)),
            slow=tuple(sorted(slow)),
            now=self._loop.time(),
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
        held: set[BrokerId] = set()
        paused: set[str] = set()
        for notice in self._notices.holding():
            if notice.slow:
                paused.update(notice.slow)
            elif notice.holds and notice.stuck and self._is_by_structure:
                for neighbour in notice.stuck:
                    held |= self._behind(self._scot, self._broker, notice.broker, neighbour)
            elif notice.holds:
                held |= self._known
        self.held = self._windows | held
        self.held_for_batches = self._lacking | held
        self.paused = frozenset(paused)
        self.version += 1
        self._changed()

    def _pass_on(self, notice: Notice, sender: BrokerId | None) -> None:
        for neighbour, link in self._links.items():
            if neighbour != sender:
                link.control(notice)


def hosts_behind(
    scot: SCOT, start: BrokerId, broker: BrokerId, neighbour: BrokerId
) -> set[BrokerId]:
    """Return the hosts to which what is published at `start` goes from `broker` to `neighbour`.

    A notification changes clusters at once, at its first broker, and then stays in its host's.
    Where both are the same broker, it is this one alone.
    """
    if neighbour == broker:
        return {broker}
    if broker.cluster != neighbour.cluster:
        return set(scot.cluster(neighbour.cluster)) if start == broker else set()
    tree = scot.acyclic
    ahead = tree.distance(start.region, broker.region) + 1
    return {
        host
        for host in scot.cluster(broker.cluster)
        if ahead + tree.distance(neighbour.region, host.region)
        == tree.distance(start.region, host.region)
    }


def targets_behind(
    scot: SCOT, start: BrokerId, broker: BrokerId, neighbour: BrokerId
) -> set[BrokerId]:
    """Return the hosts to which a shortest way from `start` leads from `broker` to `neighbour`.

    Under target routing a copy changes clusters anywhere on its way, and once. Where both are the
    same broker, it is this one alone.
    """
    if neighbour == broker:
        return {broker}
    ahead = scot.distance(start, broker) + 1
    return {
        host
        for host in scot.brokers
        if ahead + scot.distance(neighbour, host) == scot.distance(start, host)
    }
