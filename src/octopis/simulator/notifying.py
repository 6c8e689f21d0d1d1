"""What stations do with notifications, whichever algorithm routes them: the common part.

These are the cheap forms of the routing core's algorithms. Tables have settled when notifications
begin, so who is behind an output is a set of brokers that follows from the overlay (SNR, DNR) or
from the flood (BID), and matching was done once for all brokers. Tests show that they do what
`routing.Broker` does, record by record.
"""

from octopis.scenario.costs import Costs
from octopis.simulator.audience import Copy, Flight
from octopis.simulator.kernel import Kernel
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station


class Notifying:
    """Base of the algorithms: costs, deliveries, and accounting for copies."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs, subscriptions: int) -> None:
        self._send = kernel.send
        self._ledger = ledger
        self._costs = costs
        self._cluster_masks = kernel.network.cluster_masks
        self._matching_ns = costs.matching_ns(subscriptions)
        self._service_ns = costs.routing_ns() + self._matching_ns
        self._send_ns = costs.send_notification_ns()

    def service_ns(self, station: Station, copy: Copy) -> int:  # noqa: ARG002 - BID looks at them
        """Every broker on the way matches against its whole table."""
        return self._service_ns

    def matching_ns(self, station: Station, copy: Copy) -> int:  # noqa: ARG002 - BID looks at them
        """Return the part of the service time that is matching."""
        return self._matching_ns

    def send_ns(self, mask: int) -> int:  # noqa: ARG002 - DNR and BID look at it
        """Return how long the sender is busy with a copy that carries `mask`."""
        return self._send_ns

    def lost(self, output: Output, copy: Copy, now: int) -> None:
        """Excuse the targets that only the lost copy would have reached."""
        flight: Flight = copy.subject
        flight.excused |= self._only_over(output, copy)
        self._end(flight, now)

    def _take_in(self, flight: Flight, station: Station, hops: int, now: int) -> None:
        """Note a notification at a broker, and deliver it to local clients if they want it."""
        if not hops:
            flight.accepted_ns = now
        if now > flight.completed_ns:  # noqa: PLR1730 - millions of times, and max is slower
            flight.completed_ns = now
        flight.matching_ns += self._matching_ns
        if flight.targets & station.bit:
            flight.audience.reach(flight.row, station.index, now, hops)

    def _begin(self, flight: Flight, ways: list[Output]) -> None:
        """Count copies before they are sent: a full queue may lose one at once."""
        flight.copies += len(ways)
        flight.outstanding += len(ways)
        if flight.high_rate:
            for way in ways:
                way.high_rate_messages += 1

    def _end(self, flight: Flight, now: int) -> None:
        """Count a copy that has done its work, or was lost."""
        flight.outstanding -= 1
        if not flight.outstanding:
            self._ledger.completed(flight, now)

    def _only_over(self, output: Output, copy: Copy) -> int:
        beyond = output.behind
        for cluster, mask in enumerate(self._cluster_masks):
            if copy.mask >> cluster & 1:
                beyond |= mask
        return beyond
