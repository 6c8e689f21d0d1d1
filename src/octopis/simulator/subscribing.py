"""What stations do with subscriptions: two-step broadcast (SBP), flooding (BID), or TNR's rule.

Where a subscription goes on is asked of the routing core's rules: once for each output when the
network is built, or under TNR, which looks at queues, each time. An overlay without faults, where
each subscription is made once, needs no more.
"""

from octopis.core.routing import Reason
from octopis.core.routing.algorithms import bid, sbp
from octopis.core.routing.algorithms.spreading import EARLY_MAX
from octopis.errors import OperationFailed
from octopis.scenario.costs import Costs, target_bytes
from octopis.simulator.audience import Broadcast, Copy
from octopis.simulator.kernel import Kernel
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.target_ways import TargetWays


class Subscribing:
    """Base of the protocols: costs, and accounting for copies."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs) -> None:
        self._send = kernel.sender
        self._ledger = ledger
        self._service_ns = costs.subscription_ns
        self._send_ns = costs.send_subscription_ns()

    def service_ns(self, station: Station, copy: Copy) -> int:  # noqa: ARG002 - all cost the same
        """Return how long a message about a subscription keeps a server busy."""
        return self._service_ns

    def send_ns(self, mask: int) -> int:  # noqa: ARG002 - TNR looks at it
        """Return how long the sender is busy with a copy that carries `mask`."""
        return self._send_ns

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
        self._end(broadcast, len(ways), now)

    def _end(self, broadcast: Broadcast, copies: int, now: int) -> None:
        """Count a copy that has done its work, and those it became."""
        if now > broadcast.completed_ns:  # noqa: PLR1730 - millions of times, and max is slower
            broadcast.completed_ns = now
        broadcast.copies += copies
        broadcast.outstanding += copies - 1
        if not broadcast.outstanding:
            self._ledger.settled(broadcast, now)


class TwoStepSubscribing(Subscribing):
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


class FloodSubscribing(Subscribing):
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


class EarlyChanges:
    """Changes that came before others of their host that they follow: they wait for those.

    Each is a subscription with the number of links that it came over.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], dict[int, tuple[Broadcast, int]]] = {}

    def wait(self, station: Station, broadcast: Broadcast, hops: int) -> None:
        """Let one wait, if it does not yet; its copy is outstanding until it is stored."""
        waiting = self._waiting.setdefault((station.index, broadcast.host.index), {})
        if broadcast.sequence in waiting:
            return
        waiting[broadcast.sequence] = broadcast, hops
        broadcast.outstanding += 1
        if len(waiting) > EARLY_MAX:
            raise OperationFailed(
                f"more than {EARLY_MAX} subscriptions of {broadcast.host.broker} came to "
                f"{station.broker} before those they follow: let clients subscribe more slowly"
            )

    def take(self, station: Station, host: Station, sequence: int) -> tuple[Broadcast, int] | None:
        """Return the one with this number, with its links, if it has come."""
        waiting = self._waiting.get((station.index, host.index))
        return waiting.pop(sequence, None) if waiting else None


class TargetSubscribing(Subscribing):
    """TNR: a change of a host's subscriptions goes to all others by the rule of notifications."""

    def __init__(self, kernel: Kernel, ledger: Ledger, costs: Costs) -> None:
        super().__init__(kernel, ledger, costs)
        self._service_ns = costs.target_subscription_ns
        self._spread = kernel.spreader
        brokers = len(kernel.network.stations)
        self._everyone = (1 << brokers) - 1
        self._sending_ns = [
            costs.send_subscription_ns(target_bytes(count, brokers)) for count in range(brokers + 1)
        ]
        self._ways = TargetWays(kernel.network, self._sending_ns, Reason.SUBSCRIPTION)
        self._heard = [[0] * brokers for _ in range(brokers)]
        """For each station how many changes of each host it has stored."""
        self._early = EarlyChanges()

    def send_ns(self, mask: int) -> int:
        """Targets make a message a little longer."""
        return self._sending_ns[mask.bit_count()]

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Store a subscription if all before it have come, and pass it on.

        A copy that goes around may pass a station before, or after, the one that is for it.
        """
        broadcast: Broadcast = copy.subject
        host = broadcast.host
        heard = self._heard[station.index]
        if output is None:
            broadcast.sequence = heard[host.index] + 1
        targets = (self._everyone if output is None else copy.mask) & ~station.bit
        followers = []
        if broadcast.sequence <= heard[host.index]:
            broadcast.duplicates += 1
        elif broadcast.sequence == heard[host.index] + 1:
            found: tuple[Broadcast, int] | None = broadcast, copy.hops
            while found is not None:
                heard[host.index] += 1
                self._ledger.stored(found[0], station, now, found[1])
                found = self._early.take(station, host, heard[host.index] + 1)
                if found is not None:
                    followers.append(found[0])
        else:
            self._early.wait(station, broadcast, copy.hops)
        if targets:
            self._pass_on_to(targets, station, copy, now)
        else:
            self._end(broadcast, 0, now)
        for follower in followers:
            self._end(follower, 0, now)

    def _pass_on_to(self, targets: int, station: Station, copy: Copy, now: int) -> None:
        # Nothing is down where these run, so no target is out of reach.
        ways = self._ways.plan(station, targets, copy.tried, now).ways
        for way, *_ in ways:
            way.subscription_messages += 1
        self._spread(ways, copy.subject, copy.hops + 1, now)
        self._end(copy.subject, len(ways), now)
