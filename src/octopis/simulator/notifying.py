"""What stations do with notifications: ask the algorithm's rule, and account for every copy.

The rules are the routing core's own (snr, dnr, bid, tnr). What differs from a broker is what the
rule is asked about. Tables have settled when notifications begin, so who is behind an output is a
set of brokers that follows from the overlay (SNR, DNR, TNR) or from the flood (BID), and matching
was done once for all brokers. Where real brokers run instead, the trace is the same to the byte.
"""

from abc import ABC, abstractmethod

from octopis.core.routing import LinkStatus, Reason
from octopis.core.routing.algorithms import dnr
from octopis.core.routing.algorithms.bid import Trees
from octopis.scenario.costs import Costs, target_bytes
from octopis.simulator.audience import Copy, Flight
from octopis.simulator.kernel import Kernel
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.target_ways import TargetWays


class Notifying:
    """Base of the algorithms: costs, deliveries, and accounting for copies."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs, subscriptions: int) -> None:
        self._send = kernel.sender
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


class StaticNotifying(Notifying):
    """SNR: one copy for every output that the rule allows, and that has a target behind it."""

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Act on a notification that came over `output`, or from a local publisher."""
        flight: Flight = copy.subject
        self._take_in(flight, station, copy.hops, now)
        targets = flight.targets
        routes = station.routes if output is None else output.onward
        ways = [way for behind, way in routes if targets & behind]
        if ways:
            self._begin(flight, ways)
            onward = Copy(flight, copy.hops + 1, self._send_ns, Reason.MATCH)
            for way in ways:
                self._send(way, onward, now)
        self._end(flight, now)


class DynamicNotifying(StaticNotifying):
    """DNR: as SNR, but where a target iCOL is overloaded, another copy takes its cluster along."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs, subscriptions: int) -> None:
        super().__init__(kernel, ledger, costs, subscriptions)
        self._send_pending_ns = costs.send_notification_ns((len(self._cluster_masks) + 7) // 8)
        self._status = [output.tracked_status for output in kernel.network.outputs]

    def send_ns(self, mask: int) -> int:
        """A copy that carries pending clusters is a little longer."""
        return self._send_pending_ns if mask else self._send_ns

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Act on a notification that came over `output`, or from a local publisher."""
        if output is not None and not copy.mask:
            super().serve(station, output, copy, now)  # no iCOL is a target here
            return
        flight: Flight = copy.subject
        self._take_in(flight, station, copy.hops, now)
        routes = station.routes if output is None else output.onward
        status_of, targets = self._status, flight.targets
        matching = [status_of[way.index] for behind, way in routes if targets & behind]
        acols, icols = dnr.targets(matching, copy.mask, station.icols)
        copies = self._copies(flight, copy.hops, dnr.plan(acols, icols, now))
        # Queues are looked after in the order of the outputs.
        ways = [way for way in station.outputs if status_of[way.index] in copies]
        self._begin(flight, ways)
        for way in ways:
            self._send(way, copies[status_of[way.index]], now)
        self._end(flight, now)

    def _copies(self, flight: Flight, hops: int, plan: dnr.Plan) -> dict[LinkStatus, Copy]:
        """Return the copy for each link, as planned."""
        plain = Copy(flight, hops + 1, self._send_ns, Reason.MATCH)
        pending = Copy(flight, hops + 1, self._send_ns, Reason.PENDING) if hops else plain
        copies = {status: pending if status.is_icol else plain for status in plan.plain}
        if plan.carrier is not None:
            self._ledger.count_case(plan.case.name)
            send_ns = self.send_ns(plan.cbv_p)
            carrying = Copy(flight, hops + 1, send_ns, plan.case.reason, plan.cbv_p)
            copies[plan.carrier] = carrying
        return copies


class _MatchedOnce(Notifying, ABC):
    """Base of those whose copies carry the brokers that they are for: only these match again."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs, subscriptions: int) -> None:
        super().__init__(kernel, ledger, costs, subscriptions)
        self._local_matching_ns = [-1] * len(kernel.network.stations)

    @abstractmethod
    def _routing_ns(self, carried: int) -> int:
        """Return what a step costs for a copy that carries so many brokers."""

    def service_ns(self, station: Station, copy: Copy) -> int:
        """Routing costs by what is carried; matching is rare."""
        if not copy.hops:
            flight: Flight = copy.subject
            others = flight.targets & ~station.bit
            return self._routing_ns(others.bit_count()) + self._matching_ns
        routing_ns = self._routing_ns(copy.mask.bit_count())
        return routing_ns + self._local_ns(station) if copy.mask & station.bit else routing_ns

    def matching_ns(self, station: Station, copy: Copy) -> int:
        """Matching at the publisher's host, and among local clients where it is for them."""
        if not copy.hops:
            return self._matching_ns
        return self._local_ns(station) if copy.mask & station.bit else 0

    def _local_ns(self, station: Station) -> int:
        """Matching against a broker's own clients, all of whom have subscribed by now."""
        found = self._local_matching_ns[station.index]
        if found < 0:
            found = self._costs.matching_ns(station.local_subscriptions)
            self._local_matching_ns[station.index] = found
        return found

    def _arrive(self, flight: Flight, station: Station, copy: Copy, now: int) -> int:
        """Deliver to local clients what is for them; return the brokers that it is still for."""
        left, hops, bit = copy.mask, copy.hops, station.bit
        if now > flight.completed_ns:  # noqa: PLR1730 - millions of times, and max is slower
            flight.completed_ns = now
        if not hops:
            left = flight.targets
            flight.accepted_ns = now
            flight.matching_ns += self._matching_ns
        if left & bit:
            if hops:
                flight.matching_ns += self._local_ns(station)
            flight.audience.reach(flight.row, station.index, now, hops)
            return left ^ bit
        return left

    def _only_over(self, output: Output, copy: Copy) -> int:  # noqa: ARG002 - as the base
        return copy.mask


class IdentifiedNotifying(_MatchedOnce):
    """BID: the publisher's host matches and writes the target brokers down; others only split."""

    def __init__(
        self,
        kernel: Kernel,
        ledger: Ledger,
        costs: Costs,
        subscriptions: int,
        trees: list[Trees[Output]],
    ) -> None:
        super().__init__(kernel, ledger, costs, subscriptions)
        self._trees = trees

    def _routing_ns(self, carried: int) -> int:
        """Every identification costs a little."""
        return self._costs.routing_ns(carried)

    def send_ns(self, mask: int) -> int:
        """Identifications make a copy longer."""
        extra_bytes = mask.bit_count() * self._costs.identification_bytes
        return self._costs.send_notification_ns(extra_bytes)

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:  # noqa: ARG002
        """Act on a notification that came over `output`, or from a local publisher."""
        flight: Flight = copy.subject
        bids = self._arrive(flight, station, copy, now)
        if bids:
            hops = copy.hops + 1
            copies = [
                (way, Copy(flight, hops, self.send_ns(part), Reason.MATCH, part))
                for way, part in self._trees[station.index].split(bids)
            ]
            self._begin(flight, [way for way, _ in copies])
            for way, each in copies:
                self._send(way, each, now)
        self._end(flight, now)


class TargetNotifying(_MatchedOnce):
    """TNR: the publisher's host matches; then the targets, the overlay and the queues decide."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs, subscriptions: int) -> None:
        super().__init__(kernel, ledger, costs, subscriptions)
        self._spread = kernel.spreader
        brokers = len(kernel.network.stations)
        counts = range(brokers + 1)
        self._routing_costs_ns = list(map(costs.target_routing_ns, counts))
        self._ending_ns = [0] * brokers
        """What a copy costs each station that is for it alone, once that is known."""
        self._sending_ns = [
            costs.send_notification_ns(target_bytes(count, brokers)) for count in counts
        ]
        self._ways = TargetWays(kernel.network, self._sending_ns)

    def _routing_ns(self, carried: int) -> int:
        return self._routing_costs_ns[carried]

    def service_ns(self, station: Station, copy: Copy) -> int:
        """As the base, with fewer calls."""
        mask = copy.mask
        if mask == station.bit:  # as most: its way ends here
            return self._ending_ns[station.index] or self._learn_ending(station)
        if not mask:
            return super().service_ns(station, copy)
        routing_ns = self._routing_costs_ns[mask.bit_count()]
        return routing_ns + self._local_ns(station) if mask & station.bit else routing_ns

    def _learn_ending(self, station: Station) -> int:
        found = self._routing_costs_ns[1] + self._local_ns(station)
        self._ending_ns[station.index] = found
        return found

    def send_ns(self, mask: int) -> int:
        """Targets make a copy a little longer."""
        return self._sending_ns[mask.bit_count()]

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:  # noqa: ARG002
        """Act on a notification that came over `output`, or from a local publisher."""
        flight: Flight = copy.subject
        if copy.mask == station.bit:  # as most: its way ends here
            if now > flight.completed_ns:  # noqa: PLR1730 - millions of times, and max is slower
                flight.completed_ns = now
            flight.matching_ns += self._local_matching_ns[station.index]
            flight.audience.reach(flight.row, station.index, now, copy.hops)
        else:
            targets = self._arrive(flight, station, copy, now)
            if targets:
                self._go_on(flight, targets, station, copy, now)
        flight.outstanding -= 1
        if not flight.outstanding:
            self._ledger.completed(flight, now)

    def _go_on(self, flight: Flight, targets: int, station: Station, copy: Copy, now: int) -> None:
        fan = self._ways.plan(station, targets, copy.tried, now)
        if fan.unreachable:
            flight.excused |= fan.unreachable
        ways, reasons, fans = fan.ways, fan.reasons, self._ledger.fans
        fans[reasons] = fans.get(reasons, 0) + 1
        flight.copies += len(ways)
        flight.outstanding += len(ways)  # before any is sent: a full queue may lose one
        if flight.high_rate:
            for way, *_ in ways:
                way.high_rate_messages += 1
        self._spread(ways, flight, copy.hops + 1, now)
