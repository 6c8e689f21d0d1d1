"""Small things at the edges: cuts that meet, ends of windows, copies that vanish."""

from dataclasses import replace
from heapq import heapify, heappush
from pathlib import Path

import pytest

from octopis.core.routing import Algorithm
from octopis.errors import LawViolated, OperationFailed
from octopis.scenario.document import CutLink, QueueOptions
from octopis.simulator.audience import Copy, Flight
from octopis.simulator.kernel import Kernel
from octopis.simulator.network import Output
from octopis.simulator.run import run
from octopis.trace import Level, read_summary
from support.overlays import C0
from support.simulations import (
    MS,
    Publishes,
    Setup,
    Subscribes,
    made_deliveries,
    on_disk,
    plain,
    ran,
    rows,
    written,
)

FULL = Setup(
    subscribers=(Subscribes("c,0"), Subscribes("a,0", at_ns=MS), Subscribes("a,1", at_ns=2 * MS)),
    publications=tuple(Publishes("a,0", number * 20_000) for number in range(60)),
    costs=plain(send_overhead_us=100),
)


@pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.DNR, Algorithm.BID])
@pytest.mark.parametrize("order", [1, -1])
def test_link_is_down_while_one_of_two_cuts_that_meet_says_so(algorithm: Algorithm, order: int):
    setup = Setup(
        algorithm=algorithm,
        subscribers=(Subscribes("c,0"),),
        publications=tuple(Publishes("a,0", number * MS) for number in range(200)),
        faults=(CutLink("a,0", "b,0", 10, 60), CutLink("a,0", "b,0", 60, 100))[::order],
    )
    with ran(setup, Level.DELIVERIES) as (_, trace):
        got = [number for _, number, _ in made_deliveries(trace)]
        assert got == [*range(10), *range(100, 200)]


@pytest.mark.parametrize("order", [1, -1])
def test_target_routing_goes_around_while_one_of_two_cuts_that_meet_says_so(order: int):
    setup = Setup(
        algorithm=Algorithm.TNR,
        subscribers=(Subscribes("c,0"),),
        publications=tuple(Publishes("a,0", number * MS) for number in range(200)),
        faults=(CutLink("a,0", "b,0", 10, 60), CutLink("a,0", "b,0", 60, 100))[::order],
    )
    with ran(setup, Level.DELIVERIES) as (_, trace):
        hops = {row["sequence"]: row["hops"] for row in rows(trace, "deliveries")}
        assert len(hops) == 200
        assert sorted(number for number in hops if hops[number] > 2) == list(range(10, 100))


FIVE = Setup(
    subscribers=(Subscribes("b,0"),),
    publications=(Publishes("a,0"),) * 5,
    costs=plain(routing_us=1, send_overhead_us=1000),
    window_ns=2_500_000,
)


def test_queue_that_was_empty_and_not_used_in_a_window_has_no_row():
    with ran(FIVE) as (_, trace):
        used = [row["queue_length"] + row["q_in"] + row["q_out"] for row in rows(trace, "queues")]
        assert 0 not in used


def test_samples_of_a_queue_add_up_where_a_copy_leaves_at_the_end_of_a_window():
    # The second copy of a,0 has its slot from 1.5 ms on, which is the end of a window.
    setup = Setup(
        subscribers=(Subscribes("b,0"), Subscribes("a,1")),
        publications=(Publishes("a,0"),),
        costs=plain(routing_us=500, send_overhead_us=1000),
        window_ns=MS // 2,
    )
    with ran(setup) as (summary, trace):
        length = 0
        for row in rows(trace, "queues"):
            if (row["source"], row["target"]) == ("a,0", "a,1"):
                if row["window_end_ns"] > summary.begin_ns:
                    assert row["queue_length"] == length + row["q_in"] - row["q_out"], row
                length = row["queue_length"]


class VanishesAndAppears(Kernel):
    """Loses a copy on its way to c,0, and lets another arrive there that nobody has sent."""

    def send(self, output: Output, copy: Copy, now: int) -> None:
        flight = copy.subject
        if isinstance(flight, Flight) and output.target.broker == C0 and flight.sequence == 2:
            heappush(self._agenda, (now + output.latency_ns, output.arrival_rank, copy))
        else:
            super().send(output, copy, now)

    def _give_slot(self, output: Output, copy: Copy, start: int) -> None:
        super()._give_slot(output, copy, start)
        flight = copy.subject
        if isinstance(flight, Flight) and output.target.broker == C0 and flight.sequence == 1:
            self._agenda[:] = [entry for entry in self._agenda if entry[2] is not copy]
            heapify(self._agenda)


@pytest.mark.parametrize("level", Level)
def test_copy_that_vanished_is_missed_although_another_came_from_nowhere(
    level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("octopis.simulator.simulation.Kernel", VanishesAndAppears)
    setup = Setup(
        subscribers=(Subscribes("c,0"),),
        publications=tuple(Publishes("a,0", number * MS) for number in range(5)),
    )
    with pytest.raises(LawViolated):
        run(written(setup, tmp_path / "scenario"), tmp_path / "trace", level=level)
    assert read_summary(tmp_path / "trace").state == "violated"


def test_policy_stop_does_not_say_that_something_was_dropped():
    with on_disk(replace(FULL, queues=QueueOptions(5, "stop"))) as (scenario, folder):
        with pytest.raises(OperationFailed):
            run(scenario, folder / "trace")
        (bound,) = read_summary(folder / "trace").queue_bounds
        assert bound.dropped == 0


def test_conservation_names_the_broker_that_missed_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Vanishes(Kernel):
        def _give_slot(self, output: Output, copy: Copy, start: int) -> None:
            super()._give_slot(output, copy, start)
            if isinstance(copy.subject, Flight) and output.target.broker == C0:
                self._agenda[:] = [entry for entry in self._agenda if entry[2] is not copy]
                heapify(self._agenda)

    monkeypatch.setattr("octopis.simulator.simulation.Kernel", Vanishes)
    setup = Setup(subscribers=(Subscribes("c,0"),), publications=(Publishes("a,0"),))
    with pytest.raises(LawViolated) as caught:
        run(written(setup, tmp_path / "scenario"), tmp_path / "trace")
    assert (caught.value.law, caught.value.broker) == ("conservation", "c,0")
