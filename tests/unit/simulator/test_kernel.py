"""Small scripts on a network: a message says itself what a station sends on when it has served it.

A server takes 10 ns unless a test says otherwise, a link 100 ns; senders take what a copy says.
"""

from collections.abc import Iterator
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.model import BrokerId
from octopis.core.routing import Reason
from octopis.core.topology import SCOT
from octopis.errors import OperationFailed
from octopis.scenario.document import Policy, QueueOptions
from octopis.simulator.audience import Copy
from octopis.simulator.kernel import Arrival, Kernel
from octopis.simulator.network import Network, Output, Station
from support.overlays import A0, A1, B0, B1, C0, CHAIN
from support.scenarios import random_overlay

Told = tuple[str, str, int]
"""Which message, at which broker, when."""


def message(name: str, send_ns: int = 5, *onward: tuple[BrokerId, Copy]) -> Copy:
    """Return a message that makes a station send others on, each to a neighbour."""
    return Copy(name, 0, send_ns, Reason.MATCH, message=onward)


class Diary:
    """The traffic and the recorder: does what messages say, and writes everything down."""

    def __init__(
        self, queues: QueueOptions | None = None, scot: SCOT = CHAIN, *, exact: bool = False
    ) -> None:
        self.network = Network(scot, 100, exact=exact)
        self.kernel = Kernel(self.network, queues or QueueOptions(), self)
        self.service = 10
        self.served: list[Told] = []
        self.gone: list[Told] = []
        self.in_the_queue: list[tuple[str, int, int | None, int, str]] = []

    def run(self, *arrivals: tuple[int, BrokerId, Copy]) -> list[Told]:
        """Let clients send messages; return what was served in the order of time."""

        def from_clients() -> Iterator[Arrival]:
            for number, (time, broker, copy) in enumerate(arrivals):
                yield time, number, self.network.by_broker[broker], copy

        settled = [station.unsettled for station in self.network.stations]
        self.kernel.run(self, lambda *_: None, from_clients())
        assert [station.unsettled for station in self.network.stations] == settled
        return sorted(self.served, key=lambda told: told[2])

    def output(self, source: BrokerId, target: BrokerId) -> Output:
        return self.network.output(source, target)

    def service_ns(self, _station: Station, _copy: Copy) -> int:
        return self.service

    def serve(self, station: Station, _output: Output | None, copy: Copy, now: int) -> None:
        self.served.append((copy.subject, station.broker.short, now))
        for target, each in copy.message:
            self.kernel.enqueue(self.network.output(station.broker, target), each, now)

    def lost(self, output: Output, copy: Copy, now: int) -> None:
        self.gone.append((copy.subject, output.source.broker.short, now))

    def entered(self, output: Output, now: int) -> None:
        pass

    def message(
        self, _output: Output, copy: Copy, enqueued: int, left: int | None, ahead: int, fate: str
    ) -> None:
        self.in_the_queue.append((copy.subject, enqueued, left, ahead, fate))

    def cut(self, output: Output) -> None:
        pass


@pytest.fixture(params=[False, True], ids=["ahead of time", "exact"])
def diary(request: pytest.FixtureRequest) -> Diary:
    return Diary(exact=request.param)


# Servers, links and time


def test_message_is_served_and_sent_and_then_on_its_way(diary: Diary):
    told = diary.run((1000, A0, message("from a", 5, (B0, message("to b", 5)))))
    assert told == [("from a", "a,0", 1010), ("to b", "b,0", 1010 + 5 + 100 + 10)]


def test_server_takes_messages_one_by_one(diary: Diary):
    told = diary.run((0, A0, message("x")), (3, A0, message("y")), (100, A0, message("z")))
    assert told == [("x", "a,0", 10), ("y", "a,0", 20), ("z", "a,0", 110)]
    assert diary.kernel.input_wait_max_ns == 7


def test_every_link_has_its_own_latency(diary: Diary):
    diary.output(A0, A1).latency_ns = 1
    onward = (B0, message("slowly")), (A1, message("at once"))
    told = diary.run((0, A0, message("start", 5, *onward)))
    assert told[1:] == [("at once", "a,1", 10 + 5 + 5 + 1 + 10), ("slowly", "b,0", 125)]


def test_kernel_knows_when_something_happens_next(diary: Diary):
    assert diary.kernel.next_time is None
    diary.kernel.control(7, lambda _: None)
    diary.kernel.control(5, lambda _: None)
    assert diary.kernel.next_time == 5
    diary.run()
    assert diary.kernel.next_time is None
    assert diary.kernel.now == 7


def test_next_time_knows_of_clients_that_have_not_sent_yet(diary: Diary):
    seen: list[int | None] = []
    diary.kernel.control(5, lambda _: seen.append(diary.kernel.next_time))
    diary.run((700, A0, message("x")))
    assert seen == [700]


# The sender


def burst(*names: str, target: BrokerId) -> tuple[tuple[BrokerId, Copy], ...]:
    return tuple((target, message(name)) for name in names)


def test_sender_takes_turns_among_outputs(diary: Diary):
    onward = burst("a1", "a2", "a3", target=A0) + burst("c1", target=C0) + burst("x1", target=B1)
    diary.run((0, B0, message("start", 5, *onward)))
    left = sorted((left, name) for name, _, left, _, _ in diary.in_the_queue if left is not None)
    assert left == [(10, "a1"), (15, "c1"), (20, "x1"), (25, "a2"), (30, "a3")]


def test_output_that_joins_later_has_its_turn_before_the_second_message_of_another(diary: Diary):
    diary.service = 1
    told = diary.run(
        (0, B0, message("first", 5, *burst("a1", "a2", target=A0))),
        (2, B0, message("second", 5, *burst("c1", target=C0))),  # a1 is under way until 6
    )
    assert told[2:] == [("a1", "a,0", 107), ("c1", "c,0", 112), ("a2", "a,0", 117)]


def test_sender_that_is_idle_sends_at_once(diary: Diary):
    told = diary.run(
        (0, B0, message("first", 5, *burst("a1", target=A0))),
        (5, B0, message("second", 5, *burst("a2", target=A0))),  # served at 20, a1 went at 15
    )
    assert told[2:] == [("a1", "a,0", 125), ("a2", "a,0", 135)]
    assert diary.output(B0, A0).waited_ns == 0


def test_copy_waits_for_those_before_it_in_its_queue(diary: Diary):
    diary.run((0, A0, message("start", 5, *burst("x", "y", "z", target=B0))))
    assert sorted(diary.in_the_queue) == [
        ("x", 10, 10, 0, "left"),
        ("y", 10, 15, 0, "left"),  # x has left the queue, though it is still being sent
        ("z", 10, 20, 1, "left"),
    ]
    output = diary.output(A0, B0)
    assert output.waited_ns == 5 + 10
    assert (output.messages, output.longest) == (3, 2)


def test_slow_link_keeps_its_own_messages_waiting_and_no_others(diary: Diary):
    diary.service = 1
    diary.output(B0, A0).slow = [(0, 1000, 10.0)]
    onward = burst("a1", "a2", target=A0) + burst("c1", "c2", target=C0)
    told = diary.run((0, B0, message("start", 5, *onward)))
    assert told[1:] == [
        ("c1", "c,0", 1 + 5 + 5 + 101),
        ("c2", "c,0", 1 + 5 + 10 + 101),
        ("a1", "a,0", 1 + 50 + 101),
        ("a2", "a,0", 1 + 50 + 50 + 101),
    ]


def test_link_is_fast_again_after_its_fault(diary: Diary):
    diary.service = 1
    diary.output(A0, B0).slow = [(0, 20, 10.0)]
    told = diary.run((0, A0, message("start", 5, *burst("x", "y", target=B0))))
    assert told[1:] == [("x", "b,0", 1 + 50 + 101), ("y", "b,0", 1 + 50 + 5 + 101)]


@given(st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_work_done_ahead_of_time_changes_no_time(random: Random):
    scot = random_overlay(random, (1, 4), (1, 3))
    numbers = iter(range(10_000))

    def drawn(at: BrokerId, depth: int) -> Copy:
        ways = scot.neighbours(at) if depth else ()
        count = random.choice((0, 1, 3, 6)) if ways else 0
        chosen = [random.choice(ways) for _ in range(count)]
        onward = [(way, drawn(way, depth - 1)) for way in chosen]
        return message(f"m{next(numbers)}", random.choice((1, 5, 40)), *onward)

    times = sorted(random.choice((0, 1, 10, 15, 100)) for _ in range(random.randint(1, 8)))
    places = [random.choice(scot.brokers) for _ in times]
    arrivals = [(time, at, drawn(at, 3)) for time, at in zip(times, places, strict=True)]
    slow = [(random.randrange(200), random.randrange(400), 7.0) for _ in range(3)]
    diaries = Diary(scot=scot, exact=False), Diary(scot=scot, exact=True)
    told = []
    for each in diaries:
        for number, output in enumerate(each.network.outputs):
            output.slow = slow[number % 4 : number % 4 + 1]
        told.append((sorted(each.run(*arrivals)), sorted(each.in_the_queue)))
    assert told[0] == told[1]
    assert diaries[0].kernel.input_wait_max_ns == diaries[1].kernel.input_wait_max_ns


# Equal times


def test_of_copies_that_arrive_together_the_first_link_is_first(diary: Diary):
    told = diary.run(
        (0, C0, message("c", 5, (B0, message("from c")))),
        (0, A0, message("a", 5, (B0, message("from a")))),
    )
    assert told[2:] == [("from a", "b,0", 125), ("from c", "b,0", 135)]


def test_of_messages_that_clients_send_together_the_first_is_first(diary: Diary):
    told = diary.run(*((0, A0, message(name)) for name in "zyx"))
    assert [name for name, _, _ in told] == ["z", "y", "x"]


def test_arrival_over_a_link_comes_before_that_of_a_client(diary: Diary):
    told = diary.run((0, A0, message("a", 5, (B0, message("link")))), (115, B0, message("client")))
    assert told[1:] == [("link", "b,0", 125), ("client", "b,0", 135)]


def test_waiting_message_has_its_turn_before_one_that_is_served_at_that_moment(diary: Diary):
    told = diary.run(
        (0, B0, message("first", 10, (A0, message("a1", 10)), (A0, message("a2", 10)))),
        (0, B0, message("second", 10, (C0, message("c1", 10)))),  # served at 20, as a1 has gone
    )
    assert told[2:] == [("a1", "a,0", 130), ("a2", "a,0", 140), ("c1", "c,0", 150)]


def test_controls_come_before_everything_else_and_in_their_order(diary: Diary):
    seen: list[str] = []

    def note(name: str, _now: int) -> None:
        seen.append(f"{name} after {len(diary.served)}")

    diary.kernel.control(0, partial(note, "late"))
    diary.kernel.control(0, partial(note, "later"))
    diary.kernel.control(0, partial(note, "first"), first=True)
    diary.run((0, A0, message("x")))
    assert seen == ["first after 0", "late after 0", "later after 0"]


def test_what_a_control_sends_waits_behind_a_message_whose_turn_is_at_that_moment():
    diary = Diary(exact=True)
    output = diary.output(A0, B0)
    diary.kernel.control(15, lambda now: diary.kernel.enqueue(output, message("z"), now))
    told = diary.run((0, A0, message("start", 5, *burst("x", "y", target=B0))))  # x is gone at 15
    assert [name for name, _, _ in told[1:]] == ["x", "y", "z"]
    assert diary.in_the_queue == [
        ("x", 10, 10, 0, "left"),
        ("y", 10, 15, 0, "left"),
        ("z", 15, 20, 1, "left"),
    ]


# Bounds of queues


def bounded(capacity: int, policy: Policy, *, exact: bool = False) -> Diary:
    return Diary(QueueOptions(capacity, policy), exact=exact)


def test_newest_message_is_dropped_from_a_full_queue():
    diary = bounded(2, "drop_newest")
    told = diary.run((0, A0, message("start", 5, *burst(*"vwxyz", target=B0))))
    assert [name for name, _, _ in told[1:]] == ["v", "w", "x"]
    assert diary.gone == [("y", "a,0", 10), ("z", "a,0", 10)]
    output = diary.output(A0, B0)
    assert (output.messages, output.dropped, output.first_dropped_ns) == (5, 2, 10)
    assert ("y", 10, None, 2, "dropped") in diary.in_the_queue


def test_oldest_message_is_dropped_from_a_full_queue():
    diary = bounded(2, "drop_oldest")
    told = diary.run((0, A0, message("start", 5, *burst(*"vwxyz", target=B0))))
    assert [name for name, _, _ in told[1:]] == ["v", "y", "z"]
    assert diary.gone == [("w", "a,0", 10), ("x", "a,0", 10)]
    assert diary.output(A0, B0).dropped == 2


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("policy", "kept"), [("drop_newest", "vw"), ("drop_oldest", "vz")])
def test_queue_of_one_still_moves_on(policy: Policy, kept: str, exact: bool):
    diary = bounded(1, policy, exact=exact)
    told = diary.run(
        (0, A0, message("start", 5, *burst(*"vwxyz", target=B0))),
        (200, A0, message("again", 5, *burst("more", target=B0))),
    )
    assert [name for name, at, _ in told if at == "b,0"] == [*kept, "more"]
    assert diary.output(A0, B0).dropped == 3


def test_run_stops_where_a_full_queue_says_so():
    diary = bounded(2, "stop")
    with pytest.raises(OperationFailed, match=r"to B\(b, 0\) .* 2 messages .*\"stop\""):
        diary.run((0, A0, message("start", 5, *burst(*"vwxyz", target=B0))))
    assert diary.gone == []


def test_full_queue_does_not_bother_its_neighbours():
    diary = bounded(1, "drop_newest")
    onward = burst(*"vwxyz", target=A0) + burst("c1", "c2", target=C0)
    told = diary.run((0, B0, message("start", 5, *onward)))
    assert [name for name, at, _ in told if at == "c,0"] == ["c1", "c2"]
    assert diary.output(B0, C0).dropped == 0


# Cuts


def test_cut_throws_away_what_is_queued_and_what_is_under_way():
    diary = Diary(exact=True)  # as always where links are cut
    diary.kernel.control(20, lambda now: diary.kernel.cut(diary.output(A0, B0), now))
    onward = burst(*"wxyz", target=B0) + burst("other", target=A1)
    told = diary.run((0, A0, message("start", 5, *onward)), (30, A0, message("more")))
    # w went at 10 and x at 20, as the link was cut; y and z waited.
    assert told == [("start", "a,0", 10), ("more", "a,0", 40), ("other", "a,1", 130)]
    assert sorted(diary.gone) == [(name, "a,0", 20) for name in "wxyz"]
    assert diary.output(A0, B0).cut == 4


def test_link_that_is_back_starts_with_an_empty_queue():
    diary = Diary(exact=True)
    output = diary.output(A0, B0)
    output.slow = [(0, 20, 1000.0)]  # x would take until 5010
    diary.kernel.control(12, lambda now: diary.kernel.cut(output, now))
    told = diary.run(
        (0, A0, message("start", 5, *burst(*"xyz", target=B0))),
        (200, A0, message("again", 5, *burst("more", target=B0))),
    )
    assert told[2:] == [("more", "b,0", 210 + 5 + 110)]
    assert output.cut == 3


# Interrupts


def test_interrupt_stops_a_run_between_two_steps(diary: Diary):
    class Stopped(Diary):
        def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
            self.kernel.interrupt()
            super().serve(station, output, copy, now)

    stopped = Stopped(exact=bool(diary.network.stations[0].unsettled))
    with pytest.raises(KeyboardInterrupt):
        stopped.run((0, A0, message("x", 5, *burst("y", target=B0))), (5, C0, message("z")))
    assert stopped.served == [("x", "a,0", 10)]
    assert stopped.output(A0, B0).messages == 1  # the step was done to its end
    assert stopped.kernel.next_time is not None


def test_interrupt_before_the_run_stops_it_at_once(diary: Diary):
    diary.kernel.interrupt()
    with pytest.raises(KeyboardInterrupt):
        diary.run((0, A0, message("x")))
    assert diary.served == []


def test_checkers_are_told_before_a_station_acts(diary: Diary):
    told: list[tuple[str, int, int]] = []

    def check(_: Station, copy: Copy, now: int) -> None:
        told.append((copy.subject, now, len(diary.served)))

    station = diary.network.by_broker[A0]
    diary.kernel.run(diary, check, iter([(0, 0, station, message("x"))]))
    assert told == [("x", 10, 0)]
    assert diary.served == [("x", "a,0", 10)]
