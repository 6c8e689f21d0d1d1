"""The simulator against a second one, which is slow and plain: every moment is an event of its own.

The model is that of EVALUATION.md: a broker is one server with one input queue; its copies go to
one output queue for each link; all links share the broker's sender, which takes turns among the
queues that have something to send; then the copy is on its way. Nothing is done ahead of time, and
nobody knows when anything will end before it ends. SBP and SNR only.

What happens in the same nanosecond has an order, too: first links and senders become free, then
copies arrive, then servers finish, then clients publish; of equals, the first in the overlay's
order of brokers and links, or in the scenario.
"""

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.topology import LinkKind
from octopis.scenario.document import SlowLink
from octopis.simulator.run import run
from octopis.trace import Level
from support.simulations import MS, Setup, on_disk, random_setup, rows

RANDOMS = st.randoms(use_true_random=False)


class Message(NamedTuple):
    """A copy of a subscription (publisher is None) or of a notification."""

    publisher: str | None
    number: int
    came_from: BrokerId | None
    wanted_at: frozenset[BrokerId] = frozenset()
    hops: int = 0


class Kind(IntEnum):
    """What happens, in the order in which it does where times are equal."""

    LINK_IS_FREE = 0
    SENDER_IS_FREE = 1
    ARRIVES = 2
    IS_SERVED = 3
    CLIENT_SENDS = 4


class OutputQueue:
    def __init__(self) -> None:
        self.messages: deque[Message] = deque()
        self.link_is_busy = False
        self.longest = 0
        self.sent = 0


class PlainBroker:
    def __init__(self, neighbours: tuple[BrokerId, ...]) -> None:
        self.input: deque[tuple[int, Message]] = deque()
        self.server_is_busy = False
        self.queues = {neighbour: OutputQueue() for neighbour in neighbours}
        self.ring: deque[BrokerId] = deque()
        """The queues whose turn will come, in this order."""
        self.sender_is_busy = False


class PlainSimulation:
    def __init__(self, setup: Setup) -> None:
        self.scot, self.costs, self.setup = setup.scot, setup.costs, setup
        self.brokers = {each: PlainBroker(self.scot.neighbours(each)) for each in self.scot.brokers}
        self.agenda: list[tuple[int, Kind, int, Callable[[], None]]] = []
        links = (
            (each, other) for each in self.scot.brokers for other in self.scot.neighbours(each)
        )
        self.link_numbers = {link: number for number, link in enumerate(links)}
        self.broker_numbers = {each: number for number, each in enumerate(self.scot.brokers)}
        self.now = self.begin_ns = self.input_wait_max_ns = 0
        self.stored: list[tuple[str, str, int, int]] = []
        self.delivered: list[tuple[str, int, str, str, int, int]] = []
        self.accepted: dict[tuple[str, int], int] = {}
        self.completed: dict[tuple[str, int], int] = {}

    def run(self) -> None:
        for number, each in enumerate(self.setup.subscribers):
            message = Message(None, number, None)
            self.client_sends(each.at_ns, number, each.broker, message)
        self.work()
        window_ns = self.setup.window_ns
        self.begin_ns = (self.now // window_ns + 1) * window_ns if self.setup.subscribers else 0
        self.begin_ns = self.begin_ns or window_ns
        for number, (publisher, sequence, each) in enumerate(self.setup.numbered()):
            wanted_at = frozenset(
                self.scot.broker(subscriber.broker)
                for subscriber in self.setup.subscribers
                if parse_filter(subscriber.filter).matches(each.attributes)
            )
            message = Message(publisher, sequence, None, wanted_at)
            self.client_sends(self.begin_ns + each.at_ns, number, each.broker, message)
        self.work()

    def work(self) -> None:
        while self.agenda:
            self.now, _, _, action = heappop(self.agenda)
            action()

    def at(self, time: int, kind: Kind, number: int, action: Callable[[], None]) -> None:
        heappush(self.agenda, (time, kind, number, action))

    # The server

    def client_sends(self, due: int, number: int, place: str, message: Message) -> None:
        at = self.scot.broker(place)
        self.at(due, Kind.CLIENT_SENDS, number, lambda: self.arrive(at, message))

    def arrive(self, at: BrokerId, message: Message) -> None:
        self.brokers[at].input.append((self.now, message))
        self.serve_next(at)

    def serve_next(self, at: BrokerId) -> None:
        broker = self.brokers[at]
        if broker.server_is_busy or not broker.input:
            return
        arrived, message = broker.input.popleft()
        self.input_wait_max_ns = max(self.input_wait_max_ns, self.now - arrived)
        broker.server_is_busy = True
        done, number = self.now + self.service_ns(message), self.broker_numbers[at]
        self.at(done, Kind.IS_SERVED, number, lambda: self.served(at, message))

    def service_ns(self, message: Message) -> int:
        if message.publisher is None:
            return self.costs.subscription_ns
        return self.costs.routing_ns() + self.costs.matching_ns(len(self.setup.subscribers))

    def served(self, at: BrokerId, message: Message) -> None:
        targets = self.targets(at, message)
        if message.publisher is None:
            self.stored.append((f"s{message.number}", at.short, self.now, message.hops))
        else:
            self.take_notification(at, message)
        onward = message._replace(came_from=at, hops=message.hops + 1)
        for target in targets:
            self.enqueue(at, target, onward)
        self.brokers[at].server_is_busy = False
        self.serve_next(at)

    def take_notification(self, at: BrokerId, message: Message) -> None:
        identity = message.publisher or "", message.number
        self.accepted.setdefault(identity, self.now)
        self.completed[identity] = self.now
        attributes = next(
            each.attributes
            for publisher, sequence, each in self.setup.numbered()
            if (publisher, sequence) == identity
        )
        for number, subscriber in enumerate(self.setup.subscribers):
            is_here = self.scot.broker(subscriber.broker) == at
            if is_here and parse_filter(subscriber.filter).matches(attributes):
                self.delivered.append((*identity, f"s{number}", at.short, self.now, message.hops))

    def targets(self, at: BrokerId, message: Message) -> list[BrokerId]:
        """Return the neighbours that get a copy: SBP (Algorithm 1) or SNR (Algorithm 3)."""
        source = message.came_from
        came_over_icol = source is not None and source.cluster != at.cluster
        found = []
        for neighbour in self.scot.neighbours(at):
            is_icol = self.scot.link_kind(at, neighbour) is LinkKind.ICOL
            if neighbour == source:
                continue
            if message.publisher is None:
                if not came_over_icol:
                    found.append(neighbour)
            elif not (is_icol and source is not None) and any(
                self.is_behind(at, neighbour, wanted, is_icol) for wanted in message.wanted_at
            ):
                found.append(neighbour)
        return found

    def is_behind(self, at: BrokerId, neighbour: BrokerId, wanted: BrokerId, is_icol: bool) -> bool:
        if wanted.cluster != neighbour.cluster:
            return False
        tree = self.scot.acyclic
        nearer = tree.distance(neighbour.region, wanted.region)
        return is_icol or nearer < tree.distance(at.region, wanted.region)

    # The sender

    def enqueue(self, at: BrokerId, target: BrokerId, message: Message) -> None:
        broker, queue = self.brokers[at], self.brokers[at].queues[target]
        queue.sent += 1
        queue.messages.append(message)
        queue.longest = max(queue.longest, len(queue.messages))
        if not queue.link_is_busy and target not in broker.ring:
            broker.ring.append(target)
        self.send_next(at)

    def send_next(self, at: BrokerId) -> None:
        broker = self.brokers[at]
        if broker.sender_is_busy or not broker.ring:
            return
        target = broker.ring.popleft()
        queue = broker.queues[target]
        message = queue.messages.popleft()
        send_ns = (
            self.costs.send_subscription_ns()
            if message.publisher is None
            else self.costs.send_notification_ns()
        )
        broker.sender_is_busy = queue.link_is_busy = True
        gone, free = self.now + round(send_ns * self.factor(at, target)), self.now + send_ns
        link, number = self.link_numbers[at, target], self.broker_numbers[at]
        self.at(gone, Kind.LINK_IS_FREE, link, lambda: self.link_is_free(at, target, message))
        self.at(free, Kind.SENDER_IS_FREE, number, lambda: self.sender_is_free(at))

    def sender_is_free(self, at: BrokerId) -> None:
        self.brokers[at].sender_is_busy = False
        self.send_next(at)

    def link_is_free(self, at: BrokerId, target: BrokerId, message: Message) -> None:
        broker, queue = self.brokers[at], self.brokers[at].queues[target]
        queue.link_is_busy = False
        if queue.messages:
            broker.ring.append(target)
            self.send_next(at)
        arrival, number = self.now + self.costs.latency_ns, self.link_numbers[at, target]
        self.at(arrival, Kind.ARRIVES, number, lambda: self.arrive(target, message))

    def factor(self, at: BrokerId, target: BrokerId) -> float:
        for fault in self.setup.faults:
            assert isinstance(fault, SlowLink)
            begin, end = (self.begin_ns + round(ms * MS) for ms in (fault.begin_ms, fault.end_ms))
            is_this = (fault.source, fault.target) == (at.short, target.short)
            if self.begin_ns and is_this and begin <= self.now < end:
                return fault.factor
        return 1


def check_every_time(setup: Setup, level: Level) -> PlainSimulation:
    plain = PlainSimulation(setup)
    plain.run()
    with on_disk(setup) as (scenario, folder):
        trace = folder / "trace"
        summary = run(scenario, trace, level=level)
        assert summary.begin_ns == plain.begin_ns
        assert summary.input_wait_max_ns == plain.input_wait_max_ns
        assert sorted(plain.delivered) == sorted(
            (*_identity(row), row["subscription"], row["broker"], row["delivered_ns"], row["hops"])
            for row in rows(trace, "deliveries")
        )
        published = rows(trace, "publications")
        assert plain.accepted == {_identity(row): row["accepted_ns"] for row in published}
        for row in rows(trace, "links"):
            source, target = setup.scot.broker(row["source"]), setup.scot.broker(row["target"])
            queue = plain.brokers[source].queues[target]
            assert (row["subscription_ims"] + row["notification_ims"]) == queue.sent
            assert row["queue_length_max"] == queue.longest
        assert plain.completed == {_identity(row): row["completed_ns"] for row in published}
        if level is Level.FULL:
            assert sorted(plain.stored) == sorted(
                (row["subscription"], row["broker"], row["stored_ns"], row["hops"])
                for row in rows(trace, "stored")
            )
    return plain


def _identity(row: dict[str, object]) -> tuple[object, object]:
    return row["publisher"], row["sequence"]


@given(random=RANDOMS)
@settings(max_examples=100, deadline=None)
def test_every_time_is_that_of_the_plain_simulation(random: Random):
    check_every_time(random_setup(random, Algorithm.SNR), Level.FULL)


@given(random=RANDOMS)
@settings(max_examples=100, deadline=None)
def test_every_time_is_the_same_where_work_is_done_ahead_of_time(
    random: Random,
):
    check_every_time(random_setup(random, Algorithm.SNR), Level.DELIVERIES)


def test_random_scenarios_have_long_queues_in_which_turns_matter():
    longest = [0]
    for seed in range(40):
        random = Random(seed)  # noqa: S311 - repeatable on purpose
        plain = PlainSimulation(random_setup(random, Algorithm.SNR))
        plain.run()
        longest += [
            max((queue.longest for queue in broker.queues.values()), default=0)
            for broker in plain.brokers.values()
            if sum(queue.longest > 1 for queue in broker.queues.values()) > 1
        ]
    assert sum(length >= 5 for length in longest) >= 10, sorted(longest)
