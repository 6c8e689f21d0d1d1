"""What stations do with subscriptions: the two-step broadcast (SBP), or flooding (BID).

The cheap forms of routing/broadcast.py and routing/flooding.py for an overlay without faults, in
which every subscription is made once. Tests show that they do what `routing.Broker` does.
"""

from octopis.core.routing import Reason
from octopis.errors import OperationFailed
from octopis.scenario.costs import Costs
from octopis.simulator.audience import Copy, Spread
from octopis.simulator.kernel import Kernel
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station


class _Subscribing:
    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs) -> None:
        self._kernel = kernel
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

    def _spread(self, copy: Copy, ways: list[Output], now: int) -> None:
        spread: Spread = copy.subject
        if ways:
            onward = Copy(spread, copy.hops + 1, self._send_ns, Reason.SUBSCRIPTION)
            for way in ways:
                way.subscription_messages += 1
                self._kernel.send(way, onward, now)
        if now > spread.completed_ns:  # noqa: PLR1730 - millions of times, and max is slower
            spread.completed_ns = now
        spread.copies += len(ways)
        spread.outstanding += len(ways) - 1
        if not spread.outstanding:
            self._ledger.settled(spread, now)


class TwoStepSubscribing(_Subscribing):
    """SBP: through the host's cluster, and from each of its brokers to the region."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs) -> None:
        super().__init__(kernel, ledger, costs)
        self._onward = [
            []
            if output.is_icol
            else [way for way in output.target.outputs if way is not output.back]
            for output in kernel.network.outputs
        ]

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Store a subscription, and pass it on if it is primary here."""
        self._ledger.stored(copy.subject, station, now, copy.hops)
        self._spread(copy, station.outputs if output is None else self._onward[output.index], now)


class Trees:
    """BID's trees: the brokers that are reached over each output, by its index."""

    def __init__(self, outputs: int) -> None:
        self.over = [0] * outputs


class FloodSubscribing(_Subscribing):
    """Flooding: on first receipt to all neighbours but the sender; later copies are dropped."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs, trees: Trees) -> None:
        super().__init__(kernel, ledger, costs)
        self._trees = trees
        self._known = [station.bit for station in kernel.network.stations]
        """For each station the hosts to which it knows a way."""
        self._received: dict[int, int] = {}
        self._onward = [
            [way for way in output.target.outputs if way is not output.back]
            for output in kernel.network.outputs
        ]

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Store a subscription and pass it on, or drop a copy that came too late."""
        spread: Spread = copy.subject
        received = self._received.get(spread.number, 0)
        if received & station.bit:
            spread.duplicates += 1
            self._spread(copy, [], now)
        else:
            self._received[spread.number] = received | station.bit
            self._ledger.stored(spread, station, now, copy.hops)
            if output is not None and not self._known[station.index] & spread.host.bit:
                self._known[station.index] |= spread.host.bit
                self._trees.over[output.back.index] |= spread.host.bit
            self._spread(
                copy, station.outputs if output is None else self._onward[output.index], now
            )
        if not spread.outstanding:
            del self._received[spread.number]
