import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from octopis.benchmarks.channels.faults import FaultsFound
from octopis.benchmarks.channels.logs import Verdict
from octopis.benchmarks.channels.stage import Memory
from octopis.benchmarks.core import hostile
from octopis.benchmarks.durable import store
from octopis.benchmarks.gateway import run as gateway
from octopis.benchmarks.simulator import calibration
from octopis.scenario.costs import profile_named
from support.descendants import descendants, still_running
from support.overlay_command import wait_until

OCTOPIS = Path(sys.executable).with_name("octopis")


def test_matching_measures_every_structure_in_one_run(octopis):
    status, printed, _ = octopis("bench", "matching", "--sizes", "300", "--json")
    assert status == 0
    found = json.loads(printed)
    assert {figure["structure"] for figure in found["figures"]} == {
        "index",
        "linear oracle",
        "numpy brute force",
    }
    assert all(figure["value"] > 0 for figure in found["figures"])
    assert "cores" in found["machine"]


def test_matching_measures_hostile_filters_where_asked_for(octopis, monkeypatch):
    small = {
        name: replace(workload, subscriptions=12) for name, workload in hostile.WORKLOADS.items()
    }
    monkeypatch.setattr(
        hostile, "run", lambda seed: [(name, hostile.measure(small[name], seed)) for name in small]
    )
    status, printed, _ = octopis("bench", "matching", "--sizes", "100", "--hostile", "--json")
    assert status == 0
    figures = json.loads(printed)["figures"]
    measured = {figure["structure"] for figure in figures}
    assert {workload.name for workload in hostile.WORKLOADS.values()} <= measured
    assert all(figure["value"] > 0 for figure in figures)
    assert sum(figure["target"] is not None for figure in figures) == 3


def test_routing_measures_every_algorithm(octopis):
    status, printed, _ = octopis("bench", "routing", "--subscriptions", "300", "--json")
    assert status == 0
    figures = json.loads(printed)["figures"]
    assert {figure["algorithm"] for figure in figures} == {"snr", "dnr", "bid", "tnr"}
    targets = [figure["role"] for figure in figures if figure["algorithm"] == "tnr"]
    assert targets[:3] == ["publisher's host", "on the way, a target", "on the way, no target"]
    assert [
        each for each in targets[3:] if not each.endswith(", half of all links overloaded")
    ] == []
    assert all(figure["notifications_per_s"] > 0 for figure in figures)


def test_broker_measures_rates_and_round_trips(octopis):
    words = ("--notifications", "300", "--algorithm", "tnr", "--level", "none", "--json")
    status, printed, _ = octopis("bench", "broker", *words)
    assert status == 0
    figures = json.loads(printed)["figures"]
    units = {figure["unit"] for figure in figures}
    assert units == {"notifications/s", "deliveries/s", "ms, median round trip"}
    assert all(figure["value"] > 0 for figure in figures)
    assert {figure["variant"] for figure in figures} == {"tnr without channels"}
    assert sum(figure["target"] is not None for figure in figures) == 6


def test_gateway_measures_each_of_its_loads(octopis, monkeypatch):
    one_of_each = {each.role: each for each in gateway.SETTINGS}
    monkeypatch.setattr(gateway, "SETTINGS", tuple(one_of_each.values()))
    status, printed, said = octopis("bench", "gateway", "--seconds", "0.2", "--json")
    assert status == 0, said
    figures = json.loads(printed)["figures"]
    assert [each["what"].split()[0] for each in figures] == [
        "CloudEvents",
        "NDJSON",
        "SSE,",
        "WebSocket,",
    ]
    assert all(each["per_s"] > 0 and each["what"] in said for each in figures)
    assert [each["target"] for each in figures] == [None, 60_000, 50_000, None]


def test_kills_measures_what_others_notice(octopis):
    words = ("--overlay", "line-2", "--pairs", "0", "--silent", "0", "--json")
    status, printed, said = octopis("bench", "kills", *words)
    assert status == 0, said
    found = json.loads(printed)
    assert [(each["what"], each["blow"]) for each in found["figures"]] == [
        ("1 killed", "r0,0"),
        ("1 killed", "r1,0"),
    ]
    (total,) = found["sums"]
    assert (total["times"], total["duplicates"], total["cut_off"]) == (2, 0, 0)
    assert total["equal_s_max"] > 0
    assert "1 killed: r1,0: at most" in said


CHANNELS = ("bench", "channels", "--overlay", "line-6", "--trial", "faults")


def test_channels_judges_what_clients_wrote_down(octopis, tmp_path):
    words = ("--seconds", "1", "--still-seconds", "1", "--rate", "200", "--logs", str(tmp_path))
    status, printed, said = octopis(*CHANNELS, *words, "--json")
    assert status == 0, said
    (trial,) = json.loads(printed)["trials"]
    assert (trial["trial"], trial["breaches"]) == ("faults", [])
    assert [each["what"] for each in trial["silences"]] == ["killed", "link cut", "stands still"]
    assert trial["verdict"]["expected"] > trial["verdict"]["accepted"] > 100
    assert trial["memory_late"]["largest_mb"] > 1
    assert "killed: r3,0; " in said
    assert "faults: holds" in said
    logs = {path.stem for path in (tmp_path / "faults").iterdir()}
    assert logs > {"brokers", "p0-0", "p3-1", "s1-0", "s4-1"}


def test_channels_ends_with_status_1_where_something_was_lost(octopis, monkeypatch):
    verdict = Verdict(accepted=10, expected=30, lost=3)
    nothing = Memory(0.0, 0.0)
    found = FaultsFound(verdict, 1.0, 10.0, [], {}, nothing, nothing)
    monkeypatch.setattr("octopis.benchmarks.channels.run.run", lambda *_: iter([found]))
    status, printed, error = octopis(*CHANNELS)
    assert status == 1
    assert "3 lost" in printed
    assert "channels do not keep what they promise: faults: 3 lost" in error


def test_channels_refuses_an_overlay_that_is_too_small(octopis):
    status, _, error = octopis("bench", "channels", "--overlay", "line-5", "--trial", "faults")
    assert status == 2
    assert "an overlay of 5 brokers is too small" in error


ROW_OF_2 = """
[topology]
name = "row-of-2"
[acyclic_factor]
edges = [["a", "b"]]
[connectivity_factor]
clusters = 1
"""


def attack(folder: Path, *words: str) -> tuple[str, ...]:
    """Return the words of a short attack on two brokers."""
    (folder / "row.toml").write_text(ROW_OF_2, encoding="utf-8")
    options = ("--topology", str(folder / "row.toml"), "--seconds", "0.5", "--processes", "1")
    return ("bench", "attack", *options, *words)


def test_attack_measures_what_others_notice(octopis, tmp_path):
    status, printed, said = octopis(*attack(tmp_path, "--attack", "stalled", "--json"))
    assert status == 0
    assert said.startswith("stalled: ")
    found = json.loads(printed)
    (figure,) = found["figures"]
    assert list(figure["phases"]) == ["before", "while", "after"]
    for phase in figure["phases"].values():
        assert phase["rate"] > 100
        assert 0 < phase["p50_ms"] <= phase["p99_ms"]
        assert phase["lost"] == phase["twice"] == phase["failed"] == 0
        assert 0 < phase["memory_mb"] < found["memory_mb_max"]
    assert "11 asked, 11 accepted" in figure["met"], "a subscription, and a flood of ten requests"


def test_attack_on_the_doors_of_an_overlay_with_security(octopis, tmp_path):
    crowds = ("--attack", "handshakes", "--attack", "half-open", "--scale", "0.05")
    status, printed, _ = octopis(*attack(tmp_path, *crowds, "--json"))
    assert status == 0
    slow, waves = json.loads(printed)["figures"]
    assert slow["met"].startswith("100 asked")
    assert "sent away" not in slow["met"]
    assert waves["met"].startswith(("25 asked", "50 asked"))
    for figure in (slow, waves):
        for phase in figure["phases"].values():
            assert phase["rate"] > 100
            assert phase["lost"] == phase["twice"] == phase["failed"] == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--attack", "flters"], "did you mean 'filters'?"),
        (["--attack", "churn"], "needs an overlay with three brokers or more"),
    ],
)
def test_attack_that_cannot_be_is_refused_before_anything_starts(octopis, tmp_path, words, reason):
    status, _, error = octopis(*attack(tmp_path, "--attack", "thief", *words))
    assert status == 2
    assert reason in error


def test_tables_name_the_machine(octopis):
    _, printed, _ = octopis("bench", "matching", "--sizes", "100")
    assert "cores" in printed


@pytest.mark.parametrize("sizes", ["", "ten", "0", "10,-1"])
def test_sizes_that_make_no_sense_are_refused(octopis, sizes: str):
    status, _, error = octopis("bench", "matching", "--sizes", sizes)
    assert status == 2
    assert "--sizes takes numbers" in error


def children(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads processes from /proc")
def test_interrupt_ends_the_measuring_process_too():
    command = [OCTOPIS, "bench", "matching", "--sizes", "200000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + 30
        while not (measuring := children(running.pid)) and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(running.pid, signal.SIGINT)
        _, error = running.communicate(timeout=30)
    assert running.returncode == 130
    assert error == "octopis: stopped\n"
    assert measuring
    assert not Path(f"/proc/{measuring[0]}").exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads processes from /proc")
def test_interrupted_attack_leaves_nothing_behind(tmp_path):
    words = attack(tmp_path, "--attack", "thief", "--seconds", "60")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [OCTOPIS, *words], stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        wait_until(lambda: len(descendants(running.pid)) == 3)  # overlay, brokers, attacker
        started = descendants(running.pid)
        os.kill(running.pid, signal.SIGINT)
        _, error = running.communicate(timeout=30)
    assert running.returncode == 130
    assert error == "octopis: stopped\n"
    assert not still_running(started, patience_s=30)


def test_profile_that_is_there_is_replaced_only_by_force(octopis, tmp_path, monkeypatch):
    mine = tmp_path / "mine.toml"
    mine.write_text("mine", encoding="utf-8")
    measured = []

    def calibrate(seed):
        measured.append(seed)
        return profile_named("octopis")

    monkeypatch.setattr("octopis.benchmarks.simulator.calibration.calibrate", calibrate)
    status, _, error = octopis("bench", "calibrate", "--out", str(mine))
    assert status == 2
    assert f"{mine} is there already: choose another name, or say --force to replace it" in error
    assert not measured, "it is said before seconds of measuring"
    assert octopis("bench", "calibrate", "--out", str(mine), "--force")[0] == 0
    assert "routing_us" in mine.read_text(encoding="utf-8")


def test_calibration_measures_a_step_of_target_routing_beside_one_of_bid(monkeypatch):
    for name, value in {"FEW": 50, "MANY": 200}.items():
        monkeypatch.setattr(calibration, name, value)
    for name, value in {"BATCHES": 4, "ROUNDS": 1}.items():
        monkeypatch.setattr(calibration.routing, name, value)
    monkeypatch.setattr(calibration, "_subscription_us", lambda _: 1.0)
    profile = calibration.calibrate(1)
    assert 0 < profile.costs.target_routing_us < 1000
    assert re.search(r": \d+\.\d\d of BID's step$", profile.sources["target_routing_us"])


def test_faults_measures_what_arrives_under_every_algorithm(octopis):
    status, printed, error = octopis(
        "bench", "faults", "--topology", "figure-3", "--share", "0.1", "--draws", "2", "--json"
    )
    assert status == 0
    assert "measured draw 2 of 2" in error
    found = {row["algorithm"]: row for row in json.loads(printed)["figures"]}
    assert list(found) == ["tnr", "snr", "dnr", "bid"]
    assert len({row["expected"] for row in found.values()}) == 1
    assert found["tnr"]["delivered"] == found["tnr"]["expected"] > 0
    assert found["snr"]["percent"] < 100
    assert found["tnr"]["longer_mean"] > 0


def test_store_is_measured_and_leaves_nothing_behind(octopis, monkeypatch, tmp_path):
    monkeypatch.setattr(store, "GROUPS", 20)
    monkeypatch.setattr(store, "SINGLES", 20)
    words = ("--records", "2000", "--folder", str(tmp_path), "--json")
    status, printed, _ = octopis("bench", "store", *words)
    assert status == 0
    figures = {figure["what"]: figure["value"] for figure in json.loads(printed)["figures"]}
    assert "recovery of 2,001" in figures
    assert len(figures) == 7
    assert all(value > 0 for value in figures.values())
    assert list(tmp_path.iterdir()) == []


def test_metrics_measures_what_showing_them_costs(octopis):
    words = ("--notifications", "2000", "--rounds", "1", "--every-s", "0.05", "--json")
    status, printed, said = octopis("bench", "metrics", *words)
    assert status == 0, said
    found = json.loads(printed)
    figures = found["figures"]
    assert [(each["brokers"], each["subscriptions"]) for each in figures] == [
        (1, 1000),
        (1, 50),
        (3, 50),
    ]
    assert all(each["off_us"] > 0 and each["on_us"] > 0 for each in figures)
    assert all(len(each["ratios"]) == 1 and each["scrapes"] >= 1 for each in figures)
    assert found["target"] == 1.02
