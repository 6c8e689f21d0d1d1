"""BID in the simulator: identifications in the notification, split on the way, without clusters."""

from octopis.core.routing import Reason
from octopis.scenario.costs import Costs
from octopis.simulator.audience import Copy, Flight
from octopis.simulator.kernel import Kernel
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.notifying import Notifying
from octopis.simulator.subscribing import Trees


class IdentifiedNotifying(Notifying):
    """The publisher's host matches and writes the target brokers down; the others only split."""

    def __init__(
        self, kernel: Kernel, ledger: Ledger, costs: Costs, subscriptions: int, trees: Trees
    ) -> None:
        super().__init__(kernel, ledger, costs, subscriptions)
        self._trees = trees

    def service_ns(self, station: Station, copy: Copy) -> int:
        """Every identification costs a little; matching is rare."""
        flight: Flight = copy.subject
        carried = copy.mask if copy.hops else flight.targets & ~station.bit
        routing_ns = self._costs.routing_ns(carried.bit_count())
        return routing_ns + self.matching_ns(station, copy)

    def matching_ns(self, station: Station, copy: Copy) -> int:
        """Matching at the publisher's host, and among local clients where it is for them."""
        if not copy.hops:
            return self._matching_ns
        if copy.mask & station.bit:
            return self._costs.matching_ns(station.local_subscriptions)
        return 0

    def send_ns(self, mask: int) -> int:
        """Identifications make a copy longer."""
        extra_bytes = mask.bit_count() * self._costs.identification_bytes
        return self._costs.send_notification_ns(extra_bytes)

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Act on a notification that came over `output`, or from a local publisher."""
        flight: Flight = copy.subject
        bids = flight.targets if output is None else copy.mask
        if output is None:
            flight.accepted_ns = now
        flight.completed_ns = max(flight.completed_ns, now)
        flight.matching_ns += self.matching_ns(station, copy)
        if bids & station.bit:
            flight.audience.reach(flight.row, station.index, now, copy.hops)
            bids &= ~station.bit
        over, hops = self._trees.over, copy.hops + 1
        copies = [
            (way, Copy(flight, hops, self.send_ns(carried), Reason.MATCH, carried))
            for way in (station.outputs if bids else ())
            if (carried := bids & over[way.index])
        ]
        self._begin(flight, [way for way, _ in copies])
        for way, each in copies:
            self._send(way, each, now)
        self._end(flight, now)

    def _only_over(self, output: Output, copy: Copy) -> int:  # noqa: ARG002 - as the base
        return copy.mask
