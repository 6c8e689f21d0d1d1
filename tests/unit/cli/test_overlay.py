import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from octopis.cli.live import overlay as overlay_commands
from octopis.cli.live import overlay_output
from octopis.core.routing import Algorithm
from octopis.overlay.registry import OverlayState, StateFolder
from octopis.overlay.settings import parse_overlay
from octopis.overlay.status import Statuses, ask_all
from support.live import client_of, line, overlay, ready, run_live


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTOPIS_STATE", str(tmp_path / "state"))


def test_config_prints_a_complete_file_that_can_be_read_back(octopis):
    status, printed, _ = octopis("overlay", "config", "--topology", "figure-7")
    assert status == 0
    found = parse_overlay(printed, "printed")
    assert found.topology.name == "figure-7"
    assert printed.count("[brokers.") == 9
    assert octopis("overlay", "config", "--topology", "figure-7", "--algorithm", "bid")[1] == (
        printed.replace('algorithm = "tnr"', 'algorithm = "bid"')
    )


def test_environment_reaches_the_configuration(octopis, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OCTOPIS_QUEUES_CAPACITY", "12345")
    printed = octopis("overlay", "config")[1]
    assert "capacity = 12345\n" in printed
    monkeypatch.setenv("OCTOPIS_QUEUES_CAPACTY", "1")
    status, _, said = octopis("overlay", "config")
    assert (status, "did you mean 'OCTOPIS_QUEUES_CAPACITY'" in said) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[routing]\nalgoritm = 'snr'", "unknown key 'routing.algoritm'; did you mean 'algorithm'"),
        ("[routing]\nwindow_ms = 'x'", "routing.window_ms: expected 'float', got 'str'"),
        ('[brokers."z,9"]\nport = 1', "the broker 'z,9' names 'z', which is not a vertex"),
        ('[brokers."b,2"]\nport = 70000', "port must be between 0 and 65535, not 70000"),
        ('[brokers."b,2"]\nhost = "0.0.0.0"', "use 127.0.0.1, or say insecure = true"),
    ],
)
def test_wrong_file_is_one_clear_sentence_and_nothing_starts(
    octopis, tmp_path: Path, text: str, said: str
):
    path = tmp_path / "overlay.toml"
    path.write_text(f'[topology]\ncatalogue = "figure-3"\n{text}\n', encoding="utf-8")
    status, printed, error = octopis("overlay", "up", "--config", str(path))
    assert (status, printed) == (2, "")
    assert error.startswith(f"octopis: {path}: ")
    assert said in error
    assert error.count("\n") == 1


def test_topology_and_config_exclude_each_other(octopis):
    words = ("overlay", "up", "--topology", "figure-3", "--config", "x.toml")
    assert octopis(*words)[::2] == (
        2,
        "octopis: --topology and --config exclude each other; the file has one\n",
    )


def test_trace_folder_must_be_empty(octopis, tmp_path: Path):
    (tmp_path / "file").touch()
    status, _, said = octopis("overlay", "up", "--trace", str(tmp_path))
    assert (status, "is not empty" in said) == (2, True)


@pytest.mark.parametrize("command", ["status", "down"])
def test_no_overlay_is_said_with_what_to_do(octopis, command: str):
    status, _, said = octopis("overlay", command)
    assert (status, said) == (
        1,
        "octopis: no overlay runs: start one with octopis overlay up\n",
    )


def test_status_by_file_needs_ports(octopis, tmp_path: Path):
    path = tmp_path / "overlay.toml"
    path.write_text('[topology]\ncatalogue = "figure-3"\n', encoding="utf-8")
    status, _, said = octopis("overlay", "status", "--config", str(path))
    assert (status, "does not say at which port B(a, 0) listens" in said) == (2, True)


def statuses_of(algorithm: Algorithm) -> Statuses:
    found: list[Any] = []

    async def work() -> None:
        async with ready(overlay(line(2), algorithm)) as live:
            addresses = {broker.short: str(each.address) for broker, each in live.items()}
            async with client_of(next(iter(live.values()))) as client:
                await client.publish({"x": 1})
                await asyncio.sleep(0.15)  # what links have carried at the start is long ago
                found.append(await ask_all(addresses))

    run_live(work())
    return found[0]


def test_status_shows_brokers_links_and_who_does_not_answer(capsys: pytest.CaptureFixture[str]):
    statuses = statuses_of(Algorithm.DNR)
    statuses["c,0"] = {"address": "127.0.0.1:7", "error": "no broker can be reached"}
    overlay_output.print_status("small", statuses, all_links=True)
    printed = capsys.readouterr().out
    assert "3, 2 of them ready" in printed
    assert "Links: all links" in printed
    for broker, status in statuses.items():
        assert f"{broker}     {status['address']} " in printed
    assert "127.0.0.1:7      no answer" in printed
    assert "c,0: no broker can be reached" in printed
    assert printed.splitlines()[-1].strip().startswith("dropped"), "the sums stay in sight"
    overlay_output.print_status("small", statuses, all_links=False)
    assert "--links shows all" in capsys.readouterr().out
    assert json.dumps(statuses)


def test_status_of_target_routing_shows_what_is_dead_and_what_is_gone_around(
    capsys: pytest.CaptureFixture[str],
):
    statuses = statuses_of(Algorithm.TNR)
    del statuses["b,0"]
    statuses["a,0"]["links"]["b,0"]["up"] = False
    statuses["a,0"]["cases"] = {"target": 1_200, "around fault": 3}
    statuses["a,0"]["counters"] |= {"rerouted": 7, "lost_without_route": 5}
    overlay_output.print_status("small", statuses, all_links=True)
    printed = " ".join(capsys.readouterr().out.split())
    for said in (
        "copies by reason target: 1,200, around fault: 3",
        "links gone around a,0 > b,0",
        "rerouted from broken links 7",
        "targets that could not be reached 5",
        "dead, as neighbours see it b,0",
    ):
        assert said in printed
    assert "dynamic routing" not in printed


FIGURE_7 = '[topology]\ncatalogue = "figure-7"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "overlay.toml"
    path.write_text(FIGURE_7, encoding="utf-8")
    return path


def test_neighbour_without_a_port_is_an_error_that_says_what_to_write(octopis, config: Path):
    status, _, said = octopis("broker", "run", "--config", str(config), "--broker", "b,2")
    assert status == 2
    assert "does not say where B(a, 2), a neighbour of B(b, 2), listens" in said
    assert 'give [brokers."a,2"] a port' in said


def test_unknown_broker_is_named(octopis, config: Path):
    status, _, said = octopis("broker", "run", "--config", str(config), "--broker", "x,1")
    assert (status, "the broker 'x,1' names 'x'" in said) == (2, True)


def test_file_that_is_not_there_is_named(octopis):
    status, _, said = octopis("broker", "run", "--config", "nothing.toml", "--broker", "a,0")
    assert (status, said) == (2, "octopis: cannot read nothing.toml: No such file or directory\n")


# Several overlays


@contextmanager
def noted_as_running(tmp_path: Path, *names: str) -> Iterator[dict[int, ExitStack]]:
    """Note overlays as if they ran; each ends when what is yielded for its process is closed."""
    with ExitStack() as whole:
        ends: dict[int, ExitStack] = {}
        for pid, name in enumerate(names, start=1):
            ends[pid] = whole.enter_context(ExitStack())
            folder = ends[pid].enter_context(StateFolder(tmp_path / "state", name))
            folder.write(state_of(name, pid, folder.path))
        yield ends


def state_of(name: str, pid: int, folder: Path) -> OverlayState:
    return OverlayState(
        name=name,
        topology="figure-3",
        algorithm="dnr",
        pid=pid,
        started_ns=time.time_ns() - 62 * 10**9,
        ready=True,
        folder=str(folder),
        addresses={"a,0": "127.0.0.1:7400"},
        processes=[["a,0"]],
        stop_s=5.0,
    )


def test_list_shows_what_runs_and_what_ended_without_a_word(octopis, tmp_path: Path):
    assert octopis("overlay", "list")[:2] == (
        0,
        "No overlay runs: start one with octopis overlay up.\n",
    )
    with noted_as_running(tmp_path, "one", "other"):
        printed = octopis("overlay", "list")[1]
        assert "one      up           1  dnr        octopis://127.0.0.1:7400" in printed
        assert "1 min 2 s ago" in printed
        found = json.loads(octopis("overlay", "list", "--json")[1])
        assert [each["name"] for each in found["running"]] == ["one", "other"]
        assert found["ended"] == []
    gone = tmp_path / "state" / "gone"
    gone.mkdir()
    (gone / "state.json").write_text(json.dumps(as_json(state_of("gone", 3, gone))))
    printed = octopis("overlay", "list")[1]
    assert f"gone ended without an orderly stop: its logs are in {gone}\n" in printed


def as_json(state: OverlayState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


def test_down_all_stops_every_overlay_and_is_content_where_there_is_none(
    octopis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with noted_as_running(tmp_path, "one", "other") as ends:

        def kill(pid: int, number: int) -> None:
            if not number:
                raise ProcessLookupError
            ends[pid].close()

        monkeypatch.setattr(os, "kill", kill)
        status, _, said = octopis("overlay", "down")
        assert (status, "say which of one, other, or --all" in said) == (2, True)
        assert octopis("overlay", "down", "one", "--all")[0] == 2
        status, printed, _ = octopis("overlay", "down", "--all")
        assert (status, printed) == (0, "one has stopped.\nother has stopped.\n")
    assert octopis("overlay", "down", "--all")[:2] == (0, "No overlay runs.\n")


@pytest.mark.parametrize("is_ready", [True, False])
def test_overlay_in_the_foreground_says_that_it_has_stopped(
    octopis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_ready: bool
):
    class Stopped:
        undrained = 0

        def __init__(self, order: object) -> None: ...

        def stop_at_signals(self) -> None: ...

        async def run(self, on_ready: Callable[[OverlayState], None]) -> None:
            if is_ready:
                on_ready(state_of("one", 1, tmp_path))

    monkeypatch.setattr(overlay_commands, "Supervisor", Stopped)
    last = octopis("overlay", "up")[1].splitlines()[-1]
    assert last == ("one has stopped." if is_ready else "Stopped before it was ready.")
    printed = octopis("overlay", "up", "--json")[1]
    assert "stopped" not in printed
