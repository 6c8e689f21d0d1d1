"""What target routing does about faults."""

from collections.abc import Sequence

from octopis.core.routing.algorithms.spreading import Spreading
from octopis.core.routing.algorithms.target_routing import TargetRouting
from octopis.core.routing.algorithms.tnr import Crossroads
from octopis.core.routing.messages import HostChange, Message, NotificationMessage


class Repair:
    """Routes anew what a broken link has not taken."""

    def __init__(self, here: Crossroads, routing: TargetRouting, spreading: Spreading) -> None:
        self._here = here
        self._routing = routing
        self.compare = spreading.compare
        self.heard_of = spreading.heard_of
        self._pass_on = spreading.pass_on
        self.deliver = routing.deliver

    @property
    def reaches_all(self) -> bool:
        """Whether nothing is without a way here: with an iCOL that is up, it can go around."""
        ways, icols = self._here.links, self._here.icols.values()
        return any(icol.is_up for icol in icols) or all(way.is_up for way in ways)

    def reroute(self, messages: Sequence[Message], now_ns: int) -> int:
        """Route messages anew that were on the queue of a link that broke; say how many."""
        notifications = [each for each in messages if isinstance(each, NotificationMessage)]
        if notifications:
            self._routing.pass_on(notifications, now_ns)
        for message in messages:
            if isinstance(message, HostChange):
                self._pass_on(message, now_ns)
        return len(notifications)
