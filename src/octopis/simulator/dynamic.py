"""DNR in the simulator: around overloaded iCOLs, by the core's own choice."""

from octopis.core.routing import Reason
from octopis.core.routing.dnr import choose, left_out, split
from octopis.core.routing.link_status import PlannedQueue
from octopis.scenario.costs import Costs
from octopis.simulator.audience import Copy, Flight
from octopis.simulator.kernel import Kernel
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.static import StaticNotifying


class DynamicNotifying(StaticNotifying):
    """As SNR, but where a target iCOL is overloaded, another copy takes its cluster along."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs, subscriptions: int) -> None:
        super().__init__(kernel, ledger, costs, subscriptions)
        self._up = kernel.network.by_broker  # all links: where some are cut, real brokers run
        clusters = len(self._cluster_masks)
        self._send_pending_ns = costs.send_notification_ns((clusters + 7) // 8)

    def send_ns(self, mask: int) -> int:
        """A copy that carries pending clusters is a little longer."""
        return self._send_pending_ns if mask else self._send_ns

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Act on a notification that came over `output`, or from a local publisher."""
        flight: Flight = copy.subject
        if output is None:
            icols = [
                way for behind, way in station.routes if way.is_icol and flight.targets & behind
            ]
        elif copy.mask:
            icols = [
                way
                for _, way in station.routes
                if way.is_icol and copy.mask >> way.target.broker.cluster & 1
            ]
        else:
            super().serve(station, output, copy, now)
            return
        why_icol = Reason.MATCH if output is None else Reason.PENDING
        self._take_in(flight, station, copy.hops, now)
        routes = station.routes if output is None else output.onward
        acols = [way for behind, way in routes if not way.is_icol and flight.targets & behind]
        copies = self._plan(flight, copy.hops + 1, acols, icols, why_icol, now)
        self._begin(flight, [way for way, _ in copies])
        for way, each in copies:
            self._send(way, each, now)
        self._end(flight, now)

    def _plan(  # noqa: PLR0913, PLR0917 - one decision and all that it looks at
        self,
        flight: Flight,
        hops: int,
        acols: list[Output],
        icols: list[Output],
        why_icol: Reason,
        now: int,
    ) -> list[tuple[Output, Copy]]:
        """Return the copies of a notification, in the order of the station's outputs."""
        plain = Copy(flight, hops, self._send_ns, Reason.MATCH)
        across = plain if why_icol is Reason.MATCH else Copy(flight, hops, self._send_ns, why_icol)
        planned = {way.target.broker: (way, _planned(way, now)) for way in icols}
        free, overloaded = split([queue for _, queue in planned.values()])
        if not overloaded:
            return [*((way, plain) for way in acols), *((way, across) for way in icols)]
        within = {way.target.broker: (way, _planned(way, now)) for way in acols}
        case, carrier = choose([queue for _, queue in within.values()], free, overloaded, self._up)
        self._ledger.cases[case.name] = self._ledger.cases.get(case.name, 0) + 1
        pending = left_out(overloaded, carrier)
        carrying = Copy(flight, hops, self.send_ns(pending), case.reason, int(pending))
        out = {queue.link for queue in overloaded if queue is not carrier}
        return [
            (way, carrying if queue is carrier else across if way.is_icol else plain)
            for link, (way, queue) in (within | planned).items()
            if link not in out
        ]


def _planned(way: Output, now: int) -> PlannedQueue:
    status = way.status
    assert status is not None, "dynamic routing needs link status"
    status.settle(now)
    return PlannedQueue(way.target.broker, status.queue_length, status.longest_uncongested())
