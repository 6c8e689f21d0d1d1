"""What a run holds is bounded by what is under way, not by how long it goes on."""

from pathlib import Path
from typing import NamedTuple
from weakref import WeakSet

import pytest

from octopis.core.routing import Algorithm
from octopis.scenario.document import SlowLink
from octopis.scenario.publications import BATCH
from octopis.simulator import simulation as simulation_module
from octopis.simulator.audience import Audience, Copy, Flight
from octopis.simulator.kernel import Kernel
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.run import run
from octopis.simulator.subscribing import FloodSubscribing
from octopis.trace import Level
from support.simulations import MS, Publishes, Setup, Subscribes, simulated, written

SHORT, LONG = 4 * BATCH, 16 * BATCH


class Held(NamedTuple):
    audiences: int
    flights: int
    under_way: int


class Watched(Ledger):
    """A ledger that counts what is held whenever a notification has completed."""

    seen: list[Held]
    alive: WeakSet[Audience]

    def opened(self, audience: Audience) -> None:
        self.alive.add(audience)
        super().opened(audience)

    def completed(self, flight: Flight, now: int) -> None:
        held = self._open.values()
        if self.notifications % 64 == 0:
            flights = sum(len(audience.flights) for audience in held)
            under_way = sum(1 for audience in held for each in audience.flights if each.outstanding)
            self.seen.append(Held(len(self.alive), flights, under_way))
        super().completed(flight, now)


@pytest.fixture(autouse=True)
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation_module, "Ledger", Watched)
    monkeypatch.setattr(Watched, "seen", [], raising=False)
    monkeypatch.setattr(Watched, "alive", WeakSet(), raising=False)


def setup(count: int, algorithm: Algorithm = Algorithm.SNR, **changes: object) -> Setup:
    """Publish one notification every 0.2 ms for two subscribers of another broker."""
    return Setup(
        algorithm=algorithm,
        subscribers=(Subscribes("c,0"), Subscribes("b,1", "x = 2")),
        publications=tuple(
            Publishes("a,0", number * MS // 5, number % 3) for number in range(count)
        ),
        **changes,
    )


def most_held(scenario: Setup, folder: Path, **options: object) -> Held:
    """Run, and return the most that was held at once."""
    Watched.seen.clear()
    run(written(scenario, folder / "scenario"), folder / "trace", **options)
    assert not Watched.alive, "a batch is kept when all is over, though nobody collects it"
    return Held(*(max(column) for column in zip(*Watched.seen, strict=True)))


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("real_brokers", [False, True])
def test_longer_run_holds_no_more(tmp_path: Path, algorithm: Algorithm, real_brokers: bool):
    short, long = (
        most_held(
            setup(count, algorithm), tmp_path / f"{count}",
            level=Level.SUMMARY, real_brokers=real_brokers,
        )
        for count in ((SHORT, SHORT * 2) if real_brokers else (SHORT, LONG))
    )  # fmt: skip
    assert long.audiences <= short.audiences <= 2
    assert long.flights <= short.flights <= 2 * BATCH
    assert long.under_way <= short.under_way <= 5


def test_at_level_full_a_longer_run_holds_no_more(tmp_path: Path):
    short = most_held(setup(SHORT), tmp_path / "short", level=Level.FULL)
    long = most_held(setup(2 * SHORT), tmp_path / "long", level=Level.FULL)
    assert long.audiences <= short.audiences <= 2
    assert long.under_way <= short.under_way <= 5


def test_notifications_that_pile_up_are_held_until_they_have_arrived(tmp_path: Path):
    # The other way round: what is under way is held. For a while the link is too slow.
    slow = SlowLink("b,0", "c,0", 1000, 0, 500)
    held = most_held(setup(SHORT, faults=(slow,)), tmp_path, level=Level.SUMMARY)
    assert held.under_way >= BATCH
    assert held.audiences >= 3


def test_agenda_holds_what_is_under_way(monkeypatch: pytest.MonkeyPatch):
    sizes: list[int] = []

    class Sized(Kernel):
        def enqueue(self, output: Output, copy: Copy, now: int) -> None:
            sizes.append(len(self._agenda))
            super().enqueue(output, copy, now)

    monkeypatch.setattr(simulation_module, "Kernel", Sized)
    with simulated(setup(SHORT), Level.SUMMARY) as (simulation, _):
        simulation.run()
    assert len(sizes) >= 2 * SHORT
    assert max(sizes) <= 10


def test_flood_forgets_a_subscription_that_has_settled(monkeypatch: pytest.MonkeyPatch):
    many = tuple(Subscribes("a,0", "x = 9", number * MS) for number in range(300))
    sizes: list[int] = []

    class Sized(FloodSubscribing):
        def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
            super().serve(station, output, copy, now)
            sizes.append(len(self._received))

    monkeypatch.setattr(simulation_module, "FloodSubscribing", Sized)
    with simulated(Setup(algorithm=Algorithm.BID, subscribers=many)) as (simulation, _):
        simulation.run()
    assert len(sizes) == 300 * 23
    assert max(sizes) <= 2
