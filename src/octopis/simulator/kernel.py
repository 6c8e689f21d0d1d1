"""Virtual time: the agenda, the servers and the senders.

The agenda is a heap ordered by (time, priority, sequence). Priority and sequence are one number,
the *rank*, that follows from what happens and where: control first, then turns of outputs,
arrivals over outputs, stations that finish a message, and publications in their order. No two
entries have equal time and rank, so the order never depends on how a run was computed.

One entry per message is enough most of the time. When a message arrives, the time at which the
station will have served it is known, because a server is first-in first-out. As long as nothing
at the station is undecided (no message waits for a slot, none is booked to be served), nothing
can change what happens then, and it is done at once, ahead of time. Otherwise the station is
*unsettled*, and the message is booked for later.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from octopis.errors import OperationFailed
from octopis.scenario.document import QueueOptions
from octopis.simulator.audience import Copy
from octopis.simulator.network import Network, Output, Station, Waiting, Way

Served = Callable[[Station, Copy, int], None]
"""Who is told that a station has served a message, just before it acts on it: the checkers."""

_UNTOLD_MAX = 64

Arrival = tuple[int, int, Station, Copy]
"""A message of a local client: time, number, station, copy."""


class Traffic(Protocol):
    """What stations do with a kind of messages."""

    def service_ns(self, station: Station, copy: Copy) -> int:
        """Return how long the station's server works on a message."""

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Act on a message that came over `output`, or from a local client (None)."""

    def lost(self, output: Output, copy: Copy, now: int) -> None:
        """Account for a copy that will never arrive."""


class MessageLog(Protocol):
    """Who writes down every message."""

    def entered(self, output: Output, now: int) -> None:
        """A message is put on a queue."""

    def message(  # noqa: PLR0913, PLR0917 - one fact each, on the hot path
        self, output: Output, copy: Copy, enqueued: int, left: int | None, ahead: int, fate: str
    ) -> None:
        """A message has left its queue, or has been lost from it."""

    def cut(self, output: Output) -> None:
        """A link went down; its queue starts anew when it comes back."""


class Kernel:
    """Runs a network until nothing is left to do."""

    def __init__(
        self,
        network: Network,
        queues: QueueOptions,
        recorder: MessageLog | None = None,
    ) -> None:
        self.network = network
        self.now = 0
        self.input_wait_max_ns = 0
        self._capacity = queues.capacity_messages
        self._policy = queues.policy
        self._recorder = recorder
        self._agenda: list[tuple[int, int, Any]] = []
        self._controls = 0
        self._traffic: Traffic

    def control(self, time: int, action: Callable[[int], None], *, first: bool = False) -> None:
        """Have `action` called at `time`, before anything that stations do then.

        The end of a window comes `first`: what else happens then belongs to the next one.
        """
        self._controls += 1
        # Later controls get higher ranks, and all are below those of the network.
        heappush(self._agenda, (time, self._controls - (1 << (61 if first else 60)), action))

    def interrupt(self) -> None:
        """Have `run` raise KeyboardInterrupt before it does anything else."""

        def stop(_: int) -> None:
            raise KeyboardInterrupt

        heappush(self._agenda, (-1, -(1 << 62), stop))

    @property
    def next_time(self) -> int | None:
        """When something happens next, if anything does."""
        return self._agenda[0][0] if self._agenda else None

    def run(self, traffic: Traffic, served: Served, arrivals: Iterator[Arrival]) -> None:
        """Let local clients send `arrivals`, in order, and run until all is quiet."""
        self._traffic = traffic
        agenda, outputs, stations = self._agenda, self.network.outputs, self.network.stations
        first_arrival = len(outputs)
        first_served = 2 * len(outputs)
        first_client = first_served + len(stations)
        service_ns, serve = traffic.service_ns, traffic.serve
        output: Output | None
        self._next_arrival(arrivals, first_client)
        while agenda:
            now, rank, entry = heappop(agenda)
            self.now = now
            if rank < first_arrival:
                if rank < 0:
                    entry(now)
                else:
                    self._turn(outputs[rank], now)
                continue
            if rank < first_served:
                output, copy = outputs[rank - first_arrival], entry
                station = output.target
            elif rank < first_client:
                station = stations[rank - first_served]
                station.unsettled -= 1
                output, copy = entry
                served(station, copy, now)
                serve(station, output, copy, now)
                continue
            else:
                output = None
                station, copy = entry
                self._next_arrival(arrivals, first_client)
            done = station.busy_until
            if done <= now:
                done = now
            elif done - now > self.input_wait_max_ns:
                self.input_wait_max_ns = done - now
            done += service_ns(station, copy)
            station.busy_until = done
            if station.unsettled:
                station.unsettled += 1
                heappush(agenda, (done, first_served + station.index, (output, copy)))
            else:
                served(station, copy, done)
                serve(station, output, copy, done)

    def _next_arrival(self, arrivals: Iterator[Arrival], first_client: int) -> None:
        following = next(arrivals, None)
        if following is not None:
            time, number, station, copy = following
            heappush(self._agenda, (time, first_client + number, (station, copy)))

    @property
    def sender(self) -> Callable[[Output, Copy, int], None]:
        """What puts a copy on a queue: `send` where queues are tracked, else `enqueue`."""
        return self.send if self.network.tracks_queues else self.enqueue

    @property
    def spreader(self) -> Callable[[list[Way], Any, int, int], None]:
        """What puts copies on several queues, for who calls `Station.tell` before asking."""
        return self.spread if self._recorder is not None else self.spread_untold

    def spread(self, ways: list[Way], subject: Any, hops: int, now: int) -> None:
        """Put a copy on the queue of each of a station's ways, in their order."""
        for output, send_ns, reason, mask, tried in ways:
            self.send(output, Copy(subject, hops, send_ns, reason, mask, None, tried), now)

    def send(self, output: Output, copy: Copy, now: int) -> None:
        """Put a copy on an output's queue, and count it in the queue's status."""
        output.status.entered(now)  # type: ignore[union-attr]  # `sender` has seen to it
        self.enqueue(output, copy, now)

    def spread_untold(self, ways: list[Way], subject: Any, hops: int, now: int) -> None:
        """As `spread`, where only `Station.tell` brings states up to date; nothing is recorded."""
        station = ways[0][0].source
        if station.sender_free > now or station.has_slow:
            station.tell(now)
            self.spread(ways, subject, hops, now)
            return
        # Nothing waits here, and each copy goes after the one before it. As `enqueue` and
        # `_plan_slot`, without a call: this is done millions of times.
        agenda, start = self._agenda, now
        for output, send_ns, reason, mask, tried in ways:
            output.messages += 1
            output.waited_ns += start - now
            output.slot_start = start
            output.free_at = start = start + send_ns
            copy = Copy(subject, hops, send_ns, reason, mask, None, tried)
            heappush(agenda, (start + output.latency_ns, output.arrival_rank, copy))
        station.sender_free = start
        station.untold.append((now, start, ways))
        if len(station.untold) > _UNTOLD_MAX:
            station.tell(now)

    def enqueue(self, output: Output, copy: Copy, now: int) -> None:
        """Put a copy on an output's queue; its status is nobody's business, or knows already."""
        output.messages += 1
        if self._recorder is not None:
            self._recorder.entered(output, now)
        # At the very moment of its turn a message may wait still: controls come before turns, and
        # what a broker sends on account of one must not overtake it.
        if output.free_at > now or output.waiting:
            self._wait(output, copy, now)
            return
        start = output.source.sender_free
        if start > now:
            output.waited_ns += start - now
        else:
            start = now
        self._give_slot(output, copy, start)
        if self._recorder is not None:
            self._recorder.message(output, copy, now, start, 0, "left")

    def _give_slot(self, output: Output, copy: Copy, start: int) -> None:
        if output.status is not None:
            output.status.leaves_at = start
        self._plan_slot(output, copy, start)

    def _plan_slot(self, output: Output, copy: Copy, start: int) -> None:
        output.source.sender_free = end = start + copy.send_ns
        if output.slow:
            end = start + output.busy_ns(start, copy.send_ns)
        output.free_at = end
        output.slot_start = start
        heappush(self._agenda, (end + output.latency_ns, output.arrival_rank, copy))

    def _wait(self, output: Output, copy: Copy, now: int) -> None:
        waiting = output.waiting
        is_first = not waiting
        if len(waiting) >= self._capacity and not self._make_room(output, copy, now):
            return
        if is_first:
            heappush(self._agenda, (output.free_at, output.index, None))
        ahead = output.length(now)
        output.queue_length_max = max(output.queue_length_max, ahead + 1)
        waiting.append(Waiting(copy, now, ahead))
        output.source.unsettled += 1

    def _turn(self, output: Output, now: int) -> None:
        """Give the next waiting message of an output its slot."""
        copy, enqueued, ahead = output.waiting.popleft()
        station = output.source
        station.unsettled -= 1
        start = max(station.sender_free, now)
        output.waited_ns += start - enqueued
        if output.status is not None:
            output.status.roll(now)
        self._give_slot(output, copy, start)
        if output.waiting:
            heappush(self._agenda, (output.free_at, output.index, None))
        if self._recorder is not None:
            self._recorder.message(output, copy, enqueued, start, ahead, "left")

    def _make_room(self, output: Output, copy: Copy, now: int) -> bool:
        """Apply the policy to a full queue; tell whether the new copy may still be queued."""
        if output.first_dropped_ns < 0:
            output.first_dropped_ns = now
        if self._policy == "stop":
            raise OperationFailed(
                f"the output queue from {output.source.broker} to {output.target.broker} reached "
                f"its bound of {self._capacity:,} messages at {now / 1e9:.6f} s of virtual time, "
                f'and queues.policy is "stop"'
            )
        output.dropped += 1
        if self._policy == "drop_newest":
            self._drop(output, Waiting(copy, now, output.length(now)), now)
            return False
        output.source.unsettled -= 1
        self._drop(output, output.waiting.popleft(), now)
        return True

    def _drop(self, output: Output, waiting: Waiting, now: int) -> None:
        if output.status is not None:
            output.status.dropped(now)
        if self._recorder is not None:
            copy, enqueued, ahead = waiting
            self._recorder.message(output, copy, enqueued, None, ahead, "dropped")
        self._traffic.lost(output, waiting.copy, now)

    def cut(
        self, output: Output, now: int, unsent: Callable[[Output, Copy, int], None] | None = None
    ) -> None:
        """Lose what is under way on an output; hand what waits for it over to `unsent`, if given.

        Otherwise that is lost, too.
        """
        unsent = unsent or self._traffic.lost
        gone = [entry for entry in self._agenda if entry[1] == output.arrival_rank]
        kept = [
            entry for entry in self._agenda if entry[1] not in (output.arrival_rank, output.index)
        ]
        self._agenda[:] = kept
        heapify(self._agenda)
        waiting, output.waiting = list(output.waiting), type(output.waiting)()
        output.source.unsettled -= len(waiting)
        output.cut += len(gone) + len(waiting)
        output.free_at = min(output.free_at, now)
        output.slot_start = min(output.slot_start, now)
        for _, _, copy in sorted(gone, key=lambda entry: entry[0]):
            self._traffic.lost(output, copy, now)
        for each in waiting:
            if self._recorder is not None:
                self._recorder.message(output, each.copy, each.enqueued_ns, None, each.ahead, "cut")
            unsent(output, each.copy, now)
        if self._recorder is not None:
            self._recorder.cut(output)
