"""What stations do with subscriptions: the two-step broadcast (SBP), or flooding (BID).

Where a subscription goes on is asked of the routing core's rules, once for each output when the
network is built. An overlay without faults, where each subscription is made once, needs no more.
"""

from octopis.core.routing import Reason, bid, sbp
from octopis.errors import OperationFailed
from octopis.scenario.costs import Costs
from octopis.simulator.audience import Broadcast, Copy
from octopis.simulator.kernel import Kernel
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station


class _Subscribing:
    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs) -> None:
        self._send = kernel.sender
        self._ledger = ledger
        self._service_ns = costs.subscription_ns
        self._send_ns = costs.send_subscription_ns()

    def service_ns(self, station: Station, copy: Copy) -> int:  # noqa: ARG002 - all cost the same
        """Return how long a message about a subscription keeps a server busy."""
        return self._service_ns

    def lost(self, output: Output, copy: Copy, now: int) -> None:  # noqa: ARG002 - nothing to save
        """A subscription that some brokers do not know would spoil the run."""
        raise OperationFailed(
            f"the output queue from {output.source.broker} to {output.target.broker} reached its "
            f"bound at {now / 1e9:.6f} s of virtual time, and a subscription was dropped: raise "
            f"queues.capacity_messages, or let clients subscribe more slowly"
        )

    def _pass_on(self, copy: Copy, ways: list[Output], now: int) -> None:
        broadcast: Broadcast = copy.subject
        if ways:
            onward = Copy(broadcast, copy.hops + 1, self._send_ns, Reason.SUBSCRIPTION)
            for way in ways:
                way.subscription_messages += 1
                self._send(way, onward, now)
        if now > broadcast.completed_ns:  # noqa: PLR1730 - millions of times, and max is slower
            broadcast.completed_ns = now
        broadcast.copies += len(ways)
        broadcast.outstanding += len(ways) - 1
        if not broadcast.outstanding:
            self._ledger.settled(broadcast, now)


class TwoStepSubscribing(_Subscribing):
    """SBP: through the host's cluster, and from each of its brokers to the region."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs) -> None:
        super().__init__(kernel, ledger, costs)
        # A subscription that came over an iCOL has left its host cluster.
        self._onward = [
            [
                way
                for way in output.target.outputs
                if sbp.forwards(is_primary=not output.is_icol, is_way_back=way is output.back)
            ]
            for output in kernel.network.outputs
        ]

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Store a subscription, and pass it on if it is primary here."""
        self._ledger.stored(copy.subject, station, now, copy.hops)
        ways = station.outputs if output is None else self._onward[output.index]
        self._pass_on(copy, ways, now)


class FloodSubscribing(_Subscribing):
    """Flooding: on first receipt to all neighbours but the sender; later copies are dropped."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs) -> None:
        super().__init__(kernel, ledger, costs)
        self.trees = [bid.Trees(station.outputs) for station in kernel.network.stations]
        """For each station the hosts that lie behind each of its outputs."""
        self._received: dict[int, int] = {}
        self._onward = [
            [
                way
                for way in output.target.outputs
                if bid.forwards(is_first=True, is_way_back=way is output.back)
            ]
            for output in kernel.network.outputs
        ]

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Store a subscription and pass it on, or drop a copy that came too late."""
        broadcast: Broadcast = copy.subject
        received = self._received.get(broadcast.number, 0)
        if received & station.bit:
            broadcast.duplicates += 1
            self._pass_on(copy, [], now)
        else:
            self._received[broadcast.number] = received | station.bit
            self._ledger.stored(broadcast, station, now, copy.hops)
            if output is not None:
                self.trees[station.index].first_heard(broadcast.host.bit, output.back)
            ways = station.outputs if output is None else self._onward[output.index]
            self._pass_on(copy, ways, now)
        if not broadcast.outstanding:
            del self._received[broadcast.number]
