"""Stations (brokers) and outputs (one direction of a link) as the kernel sees them.

A station is one server; it takes messages in one by one. Its outputs share one sender, which takes
turns: each output with something to send has at most one slot in the sender's plan. A message that
is put on an idle output gets its slot at once, after all slots planned so far; one that finds its
output busy waits until the message before it has gone, and gets its slot then. That is exactly
round-robin, and lets the kernel know a message's times as soon as it has a slot.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from octopis.core.model import BrokerId
from octopis.core.routing import Reason
from octopis.core.routing.algorithms import snr
from octopis.core.routing.link_status import LinkStatus
from octopis.core.topology import SCOT, LinkKind
from octopis.scenario.dead import parts

Route = tuple[int, "Output"]
"""Brokers behind an output, and the output."""

Way = tuple["Output", int, Reason, int, int]
"""An output, and of the copy for it: how long it is sent, why, its mask and what it has tried."""


class Waiting(NamedTuple):
    """A message that has no slot yet."""

    copy: Any
    enqueued_ns: int
    ahead: int


class Output:
    """One direction of a link: its queue, its place in the sender's plan, and its counts."""

    __slots__ = (
        "arrival_rank",
        "back",
        "behind",
        "cut",
        "dropped",
        "first_dropped_ns",
        "free_at",
        "high_rate_messages",
        "index",
        "is_icol",
        "latency_ns",
        "messages",
        "onward",
        "queue_length_max",
        "slot_start",
        "slow",
        "source",
        "status",
        "subscription_messages",
        "target",
        "up",
        "waited_ns",
        "waiting",
    )

    def __init__(self, index: int, source: "Station", target: "Station", is_icol: bool) -> None:
        self.index = index
        self.source = source
        self.target = target
        self.is_icol = is_icol
        self.back: Output
        self.arrival_rank = 0
        self.latency_ns = 0
        self.behind = 0
        """Brokers that are reached over this output and no other."""
        self.onward: list[Route] = []
        """Where a message that arrived here goes on, within its cluster."""
        self.waiting: deque[Waiting] = deque()
        self.slot_start = -1
        self.free_at = 0
        """When the last message with a slot will have gone."""
        self.slow: list[tuple[int, int, float]] = []
        self.up = True
        """Whether neither the link is cut nor one of its ends is dead."""
        self.status: LinkStatus | None = None
        """What routing knows of the queue; kept only where somebody asks."""
        self.messages = 0
        self.subscription_messages = 0
        self.high_rate_messages = 0
        """Copies of what high-rate publishers sent."""
        self.waited_ns = 0
        self.queue_length_max = 0
        self.dropped = 0
        self.cut = 0
        self.first_dropped_ns = -1

    @property
    def tracked_status(self) -> LinkStatus:
        """The status of the queue, which must be kept."""
        assert self.status is not None, "the status of queues is kept"
        return self.status

    @property
    def longest(self) -> int:
        """The most messages that were queued at once."""
        return max(self.queue_length_max, min(1, self.messages))

    def busy_ns(self, start: int, send_ns: int) -> int:
        """Return how long a message that starts at `start` keeps the link busy."""
        for begin, end, factor in self.slow:
            if begin <= start < end:
                return round(send_ns * factor)
        return send_ns

    def length(self, now: int) -> int:
        """Return how many messages are queued now, slot or not."""
        return len(self.waiting) + (self.slot_start > now)


class Station:
    """A broker: when its server and its sender will be free, and its outputs."""

    __slots__ = (
        "bit",
        "broker",
        "busy_until",
        "has_slow",
        "icols",
        "index",
        "local_subscriptions",
        "outputs",
        "routes",
        "sender_free",
        "unsettled",
        "untold",
        "window_ns",
    )

    def __init__(self, index: int, broker: BrokerId, exact: bool) -> None:
        self.index = index
        self.broker = broker
        self.bit = 1 << index
        self.busy_until = 0
        self.sender_free = 0
        self.outputs: list[Output] = []
        self.icols: list[LinkStatus] = []
        """The states of the links to other clusters, where queues are tracked."""
        self.routes: list[Route] = []
        """Where a message of a local client goes."""
        self.local_subscriptions = 0
        self.unsettled = int(exact)
        """Messages here of which the kernel cannot yet tell how they go on (see kernel.py)."""
        self.has_slow = False
        """Whether one of its links is slow at times: it may be busy when the sender is not."""
        self.window_ns = 0
        self.untold: list[tuple[int, int, list[Way]]] = []
        """When copies were queued, and gone one after the other: the states do not know of them.

        Most queues are empty most of the time, and nobody asks for their status.
        """

    def tell(self, now: int) -> None:
        """Tell the states of the queues what has happened, but for what is too old to matter."""
        untold = self.untold
        if untold:
            # What left before the last finished window is in none of its counts.
            oldest = (now // self.window_ns - 1) * self.window_ns
            at = len(untold)
            while at and untold[at - 1][1] >= oldest:
                at -= 1
            for queued, _, ways in untold[at:]:
                start = queued
                for output, send_ns, _, _, _ in ways:
                    if start >= oldest:
                        status = output.tracked_status
                        status.entered(queued)
                        status.leaves_at = start
                    start += send_ns
            untold.clear()


class Network:
    """All stations, in the order of the overlay's brokers, and all outputs."""

    def __init__(self, scot: SCOT, latency_ns: int, *, exact: bool) -> None:
        self.scot = scot
        self.stations = [Station(index, broker, exact) for index, broker in enumerate(scot.brokers)]
        self.by_broker = {station.broker: station for station in self.stations}
        self.cluster_masks = [self._mask(scot.cluster(cluster)) for cluster in scot.clusters]
        self.outputs: list[Output] = []
        self.tracks_queues = False
        self.parts = [0] * len(self.stations)
        """Stations with equal numbers are connected; dead ones have -1."""
        for station in self.stations:
            for neighbour in scot.neighbours(station.broker):
                self._add_output(station, self.by_broker[neighbour])
        for output in self.outputs:
            output.arrival_rank = len(self.outputs) + output.index
            output.latency_ns = latency_ns
            output.back = self.output(output.target.broker, output.source.broker)
        self._join()

    def output(self, source: BrokerId, target: BrokerId) -> Output:
        """Return the output of one broker towards another."""
        outputs = self.by_broker[source].outputs
        return outputs[self.scot.neighbours(source).index(target)]

    def kill(self, dead: frozenset[BrokerId]) -> None:
        """Take all links of dead brokers down; note who is still connected with whom."""
        known = parts(self.scot, dead)
        self.parts = [known.get(station.broker, -1) for station in self.stations]
        for output in self.outputs:
            output.up = {output.source.broker, output.target.broker}.isdisjoint(dead)

    def part(self, station: Station) -> int:
        """Return the stations, by their bits, that are connected with one."""
        number = self.parts[station.index]
        return sum(each.bit for each in self.stations if self.parts[each.index] == number)

    def track_queues(self, congestion_threshold: float, window_ns: int) -> None:
        """Keep a link status for every output from now on."""
        for output in self.outputs:
            output.status = LinkStatus(
                output.target.broker,
                is_icol=output.is_icol,
                congestion_threshold=congestion_threshold,
                window_ns=window_ns,
            )
            output.source.window_ns = window_ns
            if output.is_icol:
                output.source.icols.append(output.status)
        self.tracks_queues = True

    def _add_output(self, source: Station, target: Station) -> None:
        kind = self.scot.link_kind(source.broker, target.broker)
        output = Output(len(self.outputs), source, target, kind is LinkKind.ICOL)
        self.outputs.append(output)
        source.outputs.append(output)

    def _join(self) -> None:
        """Note for every output who is behind it, and where messages go on from its end."""
        beyond = self._regions_beyond()
        for station in self.stations:
            region, cluster = station.broker
            for output in station.outputs:
                other = output.target.broker
                if output.is_icol:
                    output.behind = self.cluster_masks[other.cluster]
                else:
                    regions = beyond[region, other.region]
                    output.behind = self._mask(BrokerId(each, cluster) for each in regions)
            station.routes = _routes(station, None)
        for output in self.outputs:
            output.onward = _routes(output.target, output.back)

    def _regions_beyond(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Return for each tree edge, in both directions, the regions on its far side."""
        tree = self.scot.acyclic
        found = {}
        for one, other in tree.edges:
            far = tuple(r for r in tree.vertices if tree.distance(r, other) < tree.distance(r, one))
            found[one, other] = far
            found[other, one] = tuple(region for region in tree.vertices if region not in far)
        return found

    def _mask(self, brokers: Iterable[BrokerId]) -> int:
        mask = 0
        for broker in brokers:
            mask |= self.by_broker[broker].bit
        return mask


def _routes(station: Station, way_back: Output | None) -> list[Route]:
    """Return the outputs that SNR may take, for what came from a client or over the way back."""
    return [
        (output.behind, output)
        for output in station.outputs
        if snr.forwards(
            from_client=way_back is None,
            is_icol=output.is_icol,
            is_way_back=output is way_back,
        )
    ]
