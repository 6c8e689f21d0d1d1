"""A running overlay, used from the shell: status, pub and sub, traces, scenarios, brokers."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from octopis.scenario.folder import read_scenario
from octopis.simulator.run import run
from octopis.trace import Level, read_summary
from octopis.trace.schemas import SCHEMAS
from support.overlay_command import SMALL, Shell, Up, wait_until
from support.processes import free_ports

SHAPED = """
[topology]
catalogue = "figure-7"
[routing]
algorithm = "dnr"
[limits]
drain_s = 0.2
[[links.shape]]
source = "b,2"
target = "b,0"
bandwidth_bytes_per_s = 200
"""


def status(shell: Shell) -> dict[str, Any]:
    found = shell.run("overlay", "status", "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def status_while_overloaded(shell: Shell) -> dict[str, Any]:
    """Return a status that shows the slow link overloaded.

    Going around a link relieves it: in a window in which nothing new comes to it, it is not
    overloaded, however long its queue is. So not every status shows it.
    """
    seen: list[dict[str, Any]] = []

    def shows() -> bool:
        seen.append(status(shell))
        return seen[-1]["brokers"]["b,2"]["links"]["b,0"]["overloaded"]

    wait_until(shows)
    return seen[-1]


def subscriber(shell: Shell, url: str, *words: str) -> "subprocess.Popen[str]":
    """Start `octopis sub`, and wait until it has subscribed everywhere."""
    process = shell.start("sub", url, *words)
    assert process.stderr is not None
    for said in ("subscribed at B(", "subscribed at every broker"):
        line = process.stderr.readline()
        assert said in line, line + process.communicate()[1]
    return process


def everybody_knows(up: Up, count: int) -> None:
    wait_until(lambda: {each.get("subscriptions") for each in up.statuses().values()} == {count})


def lines(count: int) -> str:
    return "".join(f'{{"x": {number}}}\n' for number in range(count))


def publish(shell: Shell, up: Up, broker: str, text: str, *words: str) -> str:
    process = shell.start("pub", up.url(broker), "--file", "-", *words)
    printed, said = process.communicate(text, timeout=60)
    assert process.returncode == 0, said
    return printed


def test_status_shows_overloaded_links_and_the_cases_of_dynamic_routing(shell: Shell):
    with shell.up("--config", shell.config(SHAPED)) as up:
        readers = [subscriber(shell, up.url(broker), "x >= 0") for broker in ("c,0", "c,1")]
        everybody_knows(up, 2)
        (shell.folder / "lines").write_text(lines(100_000), encoding="utf-8")
        shell.start("pub", up.url("b,2"), "--file", "lines", "--rate", "100")
        wait_until(lambda: up.statuses()["b,2"]["cases"].get("I", 0) > 50)
        found = status_while_overloaded(shell)
        assert found["brokers"]["b,2"]["links"]["b,0"]["queue_length"] > 10
        assert found["total"]["overloaded"] >= 1
        assert found["total"]["cases"]["I"] > 50
        assert found["total"]["published"] > 50
        shown = shell.run("overlay", "status").stdout
        assert "cases of dynamic routing  I:" in shown
        assert "Links: links that are in use, overloaded or down" in shown
        assert [reader.poll() for reader in readers] == [None, None]


def test_watched_status_goes_on_until_it_is_stopped(shell: Shell):
    with shell.up("--config", shell.config(SMALL)):
        watching = shell.start("overlay", "status", "--watch", "--every-s", "0.1", "--json")
        assert watching.stdout is not None
        found = [json.loads(watching.stdout.readline()) for _ in range(2)]
        assert [each["total"]["ready"] for each in found] == [4, 4]
        watching.send_signal(signal.SIGINT)
        assert watching.communicate(timeout=30)[1].startswith("octopis: stopped")


def test_what_pub_says_is_what_sub_prints(shell: Shell):
    with shell.up("--config", shell.config(SMALL)) as up:
        reader = subscriber(shell, up.url("b,1"), "price > 5", "symbol = 'MS'", "--count", "4")
        everybody_knows(up, 2)
        one = shell.run("pub", up.url("a,0"), "symbol=IBM", "price=12.5", "--payload", "hello")
        assert one.stdout == "accepted: 1 notification\n"
        text = '{"price": 7}\n\n{"price": 1}\n{"attributes": {"price": 8}, "payload": "AAE="}\n'
        assert publish(shell, up, "a,0", text) == "accepted: 3 notifications\n"
        default = shell.run("pub", "symbol=MS", "price=9")  # at the latest overlay here
        assert default.returncode == 0, default.stderr
        printed, _ = reader.communicate(timeout=30)
    found = [json.loads(line) for line in printed.splitlines()]
    assert [each["attributes"] for each in found] == [
        {"symbol": "IBM", "price": 12.5},
        {"price": 7},
        {"price": 8},
        {"symbol": "MS", "price": 9},
    ]
    assert [each.get("payload") for each in found] == ["aGVsbG8=", None, "AAE=", None]
    assert [each["sequence"] for each in found] == [1, 1, 3, 1]
    assert [len(each["subscriptions"]) for each in found] == [1, 1, 1, 2]
    assert all(each["publisher"] and each["intended_ns"] > 0 for each in found)


def test_bad_line_is_named_and_what_came_before_it_is_accepted(shell: Shell):
    with shell.up("--config", shell.config(SMALL)) as up:
        text = '{"x": 1}\n{"x": 2}\n{"x": [3]}\n{"x": 4}\n'
        process = shell.start("pub", up.url("a,0"), "--file", "-")
        _, said = process.communicate(text, timeout=30)
        assert process.returncode == 2
        assert "accepted: at least 2 notifications" in said
        assert "standard input, line 3: " in said
        assert up.statuses()["a,0"]["published"] == 2
        missing = shell.run("pub", up.url("a,0"), "--file", "nothing.jsonl")
        assert (missing.returncode, "cannot read nothing.jsonl" in missing.stderr) == (2, True)


def test_sub_ends_well_on_ctrl_c_and_on_a_closed_pipe(shell: Shell):
    with shell.up("--config", shell.config(SMALL)) as up:
        reader = subscriber(shell, up.url("a,0"), "x >= 0")
        reader.send_signal(signal.SIGINT)
        assert reader.communicate(timeout=30) == ("", "octopis: stopped\n")
        assert reader.returncode == 0
        closed = subscriber(shell, up.url("a,0"), "x >= 0")
        assert closed.stdout is not None
        closed.stdout.close()
        shell.run("pub", up.url("a,0"), "x=1")
        assert closed.stderr is not None
        assert (closed.stderr.read(), closed.wait(timeout=30)) == ("", 0)


def test_gap_is_reported_when_the_broker_is_gone(shell: Shell):
    first = str(free_ports(4)[0])
    with shell.up("--config", shell.config(SMALL), port=first) as up:
        reader = subscriber(shell, up.url("a,0"), "x >= 0")
        up.process.kill()
        wait_until(lambda: not shell.workers())
    with shell.up("--config", "overlay.toml", port=first):
        assert reader.stderr is not None
        shell_said = reader.stderr.readline()
        while "missing" not in shell_said:
            shell_said = reader.stderr.readline()
        assert "notifications may be missing here: the connection was lost" in shell_said


@pytest.mark.parametrize("level", list(Level), ids=lambda level: level.value)
def test_trace_has_the_simulators_schema_and_the_deliveries_that_were_seen(
    shell: Shell, level: Level
):
    options = ("--trace", "trace", "--level", level.value)
    with shell.up("--config", shell.config(SMALL), *options) as up:
        reader = subscriber(shell, up.url("b,1"), "x >= 10", "x >= 90", "--count", "90")
        everybody_knows(up, 2)
        publish(shell, up, "a,0", lines(100))
        seen = [json.loads(line) for line in reader.communicate(timeout=30)[0].splitlines()]
        again = shell.run("overlay", "up", "--config", "overlay.toml", *options)
        assert (again.returncode, "is not empty" in again.stderr) == (2, True)
        assert up.stop() == (0, "")
    folders = {path.name: path for path in (shell.folder / "trace").iterdir()}
    assert set(folders) == {"a,0", "a,1", "b,0", "b,1"}
    summaries = {name: read_summary(folder) for name, folder in folders.items()}
    assert {each.source for each in summaries.values()} == {"live"}
    assert [summaries[name].broker for name in folders] == list(folders)
    assert sum(each.notifications for each in summaries.values()) == 100
    assert sum(each.deliveries for each in summaries.values()) == 100
    for folder in folders.values():
        assert {path.stem for path in folder.glob("*.parquet")} == set(level.tables)
        for table in level.tables:
            assert pq.read_schema(folder / f"{table}.parquet").equals(SCHEMAS[table])
    if level is not Level.SUMMARY:
        compare_deliveries(folders, seen)
    if level is Level.FULL:
        compare_messages(folders, summaries)


def rows(folders: dict[str, Path], table: str) -> list[dict[str, Any]]:
    return [
        row
        for folder in folders.values()
        for row in pq.read_table(folder / f"{table}.parquet").to_pylist()
    ]


def compare_deliveries(folders: dict[str, Path], seen: list[dict[str, Any]]) -> None:
    deliveries = rows(folders, "deliveries")
    assert sorted(
        (each["publisher"], each["sequence"], each["subscription"]) for each in deliveries
    ) == sorted(
        (each["publisher"], each["sequence"], name)
        for each in seen
        for name in each["subscriptions"]
    )
    assert {each["broker"] for each in deliveries} == {"b,1"}
    published = {each["sequence"]: each for each in rows(folders, "publications")}
    assert len(published) == 100
    for each in deliveries:
        begin = published[each["sequence"]]
        assert begin["intended_ns"] <= begin["accepted_ns"] <= each["delivered_ns"]
    assert len(rows(folders, "subscriptions")) == 2


def compare_messages(folders: dict[str, Path], summaries: dict[str, Any]) -> None:
    ims = rows(folders, "ims")
    kinds = [each["message"] for each in ims]
    for kind in ("notification", "subscription", "sync"):
        counted = sum(getattr(each, f"{kind}_ims") for each in summaries.values())
        assert kinds.count(kind) == counted
    # Ending the two subscriptions sends messages, too, and those have left as all others.
    assert {each["fate"] for each in ims} == {"left"}
    assert all(each["enqueued_ns"] <= each["left_ns"] for each in ims)
    assert len(rows(folders, "stored")) == 8
    assert sum(each["q_in"] for each in rows(folders, "queues")) <= len(ims)
    assert sum(each["notification_ims"] for each in rows(folders, "links")) == 2 * 90


@pytest.mark.parametrize("algorithm", ["snr", "dnr", "bid"])
def test_scenario_gives_the_same_live_and_in_the_simulator(shell: Shell, algorithm: str):
    made = shell.run(
        *("sim", "example", "--out", "scenario", "--algorithm", algorithm),
        *("--subscribers", "30", "--publishers", "5", "--notifications", "40"),
        *("--per-minute", "2400"),
    )
    assert made.returncode == 0, made.stderr
    scenario = read_scenario(shell.folder / "scenario")
    simulated = run(scenario, shell.folder / "simulated", level=Level.DELIVERIES)
    with shell.up("--topology", "figure-3", "--algorithm", algorithm, "--trace", "live") as up:
        played = shell.run("overlay", "play", "scenario", "--speed", "2", "--json")
        assert played.returncode == 0, played.stderr
        assert up.stop() == (0, "")
    found = json.loads(played.stdout)
    assert found["delivered"] == simulated.deliveries > 0
    if algorithm == "snr":  # the others' ways depend on the load, and on who was heard first
        assert found["counters"]["notification_ims"] == simulated.notification_ims > 0
        # A live subscription also ends, which every broker must hear of.
        assert found["counters"]["subscription_ims"] == simulated.subscription_ims
    assert found["gaps"] == []
    assert 0 < found["delay_ms"]["median"] <= found["delay_ms"]["p99"]

    def delivered(folders: list[Path]) -> list[tuple[object, ...]]:
        tables = [pq.read_table(folder / "deliveries.parquet").to_pylist() for folder in folders]
        names = ("publisher", "subscription", "broker")
        return sorted(tuple(row[name] for name in names) for table in tables for row in table)

    assert delivered(list((shell.folder / "live").iterdir())) == delivered(
        [shell.folder / "simulated"]
    )


def test_scenario_for_another_overlay_is_refused(shell: Shell):
    assert shell.run("sim", "example", "--out", "scenario").returncode == 0
    with shell.up("--config", shell.config(SMALL)):
        found = shell.run("overlay", "play", "scenario")
        assert found.returncode == 2
        assert "is for figure-3 with 18 brokers, not for this overlay with 4" in found.stderr


def test_brokers_each_started_by_hand_make_an_overlay(shell: Shell):
    ports = free_ports(4)
    names = ("a,0", "a,1", "b,0", "b,1")
    places = "".join(
        f'[brokers."{name}"]\nport = {port}\n' for name, port in zip(names, ports, strict=True)
    )
    config = shell.config(SMALL + places)
    brokers = [shell.start("broker", "run", "--config", config, "--broker", name) for name in names]
    try:
        for broker in brokers:
            assert broker.stderr is not None
            while "takes requests at octopis://" not in (line := broker.stderr.readline()):
                assert line, "the broker has ended"
        found = shell.run("overlay", "status", "--config", config)
        assert "4, 4 of them ready" in found.stdout
        second = shell.run("broker", "run", "--config", config, "--broker", "a,0")
        assert second.returncode == 1
        assert f"B(a, 0) cannot listen at 127.0.0.1:{ports[0]}" in second.stderr
    finally:
        for broker in brokers:
            broker.send_signal(signal.SIGTERM)
        ends = [broker.communicate(timeout=30)[1] for broker in brokers]
    assert [broker.returncode for broker in brokers] == [0] * 4
    assert all("has stopped" in said for said in ends)
