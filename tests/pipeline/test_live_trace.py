"""What a live overlay wrote down is one run: it is measured and checked as a simulated one."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from octopis.broker.tracing import TraceOptions
from octopis.core.topology import from_catalogue
from octopis.overlay.deployment import running
from octopis.overlay.player import Play
from octopis.scenario.folder import read_scenario
from octopis.simulator.run import run
from support.live import overlay, run_live
from support.traces import make_scenario, make_trace

pytestmark = pytest.mark.usefixtures("spark")


class Played(NamedTuple):
    scenario: Path
    live: Path
    deliveries: int
    delays_ns: list[int]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("played")
    scenario = read_scenario(make_scenario(folder / "s", per_minute=6_000))
    delays_ns: list[int] = []

    async def work() -> None:
        trace = TraceOptions(folder / "live")
        async with running(overlay(from_catalogue("figure-3").scot), trace=trace) as live:
            for broker in live.values():
                await broker.ready.wait()
            addresses = {broker.short: str(each.address) for broker, each in live.items()}
            came = await Play(scenario, addresses, speed=10.0).run()
            delays_ns.extend(came.delays_ns)

    run_live(work())
    simulated = run(scenario, folder / "simulated")
    assert simulated.deliveries == len(delays_ns) > 0
    return Played(scenario.folder, folder / "live", simulated.deliveries, delays_ns)


def test_folder_of_an_overlay_is_one_run_beside_others(octopis, played: Played, tmp_path: Path):
    simulated = played.live.with_name("simulated")
    broker = next(path for path in sorted(played.live.iterdir()) if path.is_dir())
    words = [*map(str, (played.live, simulated, broker)), "--out", str(tmp_path / "m"), "--json"]
    status, printed, told = octopis("trace", "metrics", *words)
    assert (status, told) == (0, "")
    rows = {row["run"]: row for row in json.loads(printed)}
    assert set(rows) == {"live", "simulated", broker.name}
    live, alike = rows["live"], rows["simulated"]
    for name in ("deliveries", "deliveries_timed", "notification_ims", "subscriptions", "brokers"):
        assert live[name] == alike[name] > 0
    # Brokers write down when a delivery leaves, which is before a program has it.
    assert 0 < live["notification_delay_max_ns"] <= max(played.delays_ns)
    assert live["subscription_delay_mean_ns"] is None, "no single broker can know"
    assert (rows[broker.name]["brokers"], rows[broker.name]["state"]) == (1, "complete")


def test_play_is_checked_against_its_scenario(octopis, played: Played):
    words = ("trace", "check", str(played.live), "--scenario", str(played.scenario), "--json")
    status, printed, _ = octopis(*words)
    verdict = json.loads(printed)
    assert (status, set(verdict["faults"].values())) == (0, {0})
    assert verdict["due"] == verdict["delivered"] == played.deliveries


def test_without_a_scenario_it_is_said_what_cannot_be_told(octopis, played: Played):
    status, printed, _ = octopis("trace", "check", str(played.live))
    assert status == 0
    assert "not known" in printed
    assert "delivered twice" in printed
    assert "say --scenario DIR" in " ".join(printed.split())


def test_scenario_that_was_not_played_is_refused(octopis, played: Played, tmp_path: Path):
    other = make_scenario(tmp_path / "other", publishers=3)
    status, _, told = octopis("trace", "check", str(played.live), "--scenario", str(other))
    assert status == 2
    assert "40 notifications were published in" in told
    assert "play the scenario once" in told


def test_folder_of_several_runs_is_no_run(octopis, played: Played, tmp_path: Path):
    make_trace(played.scenario, tmp_path / "runs" / "one")
    status, _, told = octopis("trace", "metrics", str(tmp_path / "runs"), "--out", "m")
    assert status == 2
    assert f"name them one by one, as {tmp_path / 'runs' / 'one'}" in told
