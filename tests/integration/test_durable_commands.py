"""Durable subscriptions from the shell, with real processes: they die, and nothing is lost."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from support.overlay_command import SMALL, Shell, Up, wait_until


def publish(shell: Shell, up: Up, numbers: range) -> None:
    process = shell.start("pub", up.url("a,0"), "--file", "-", "--wait")
    _, said = process.communicate("".join(f'{{"n": {n}}}\n' for n in numbers), timeout=60)
    assert process.returncode == 0, said


def read(shell: Shell, count: int, *words: str) -> list[dict[str, Any]]:
    found = shell.run("sub", *words, "--durable", "risk", "--count", str(count))
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [each["attributes"]["n"] for each in found]


def listed(shell: Shell) -> list[dict[str, Any]]:
    found = shell.run("durable", "list", "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)["durables"]


def kill_all_brokers(shell: Shell, up: Up) -> None:
    """Kill every process of brokers at once, and wait until others are in their place."""
    before = shell.workers()
    assert len(before) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len({*shell.workers()} - {*before}) == 2)
    wait_until(lambda: all(each.get("ready") for each in up.statuses().values()))


def test_all_brokers_are_killed_and_what_was_accepted_is_printed_once(shell: Shell):
    with shell.up("--config", shell.config(SMALL), "--processes", "2", "--durable", "kept") as up:
        assert read(shell, 0, up.url("b,1"), "n >= 0") == []
        publish(shell, up, range(100))
        kill_all_brokers(shell, up)
        first = read(shell, 40)  # it is found where it lives, without an address
        publish(shell, up, range(100, 120))
        kill_all_brokers(shell, up)
        rest = read(shell, 80, "n >= 0")
        assert numbers(first + rest) == list(range(120))
        assert [each["position"] for each in first + rest] == list(range(1, 121))
        (found,) = listed(shell)
        assert (found["name"], found["host"], found["filter"]) == ("risk", "b,1", "n >= 0")
        assert (found["lag"], found["oldest"], found["newest"]) == (0, None, 120)
        status = shell.run("overlay", "status").stdout
        assert "Disks" in status
        assert "Durable subscriptions" in status
        dropped = shell.run("durable", "drop", "risk", "--yes")
        assert dropped.stdout == "risk at b,1 is dropped.\n", dropped.stderr
        assert listed(shell) == []
        missing = shell.run("durable", "show", "risk")
        assert (missing.returncode, "no durable subscription" in missing.stderr) == (2, True)
        assert up.stop()[0] == 0


def test_what_was_printed_is_acknowledged_and_nothing_else(shell: Shell):
    with shell.up("--config", shell.config(SMALL), "--durable", "kept") as up:
        assert read(shell, 0, up.url("a,1"), "n >= 0") == []
        reader = shell.start("sub", "--durable", "risk")
        assert reader.stdout is not None
        publish(shell, up, range(3))
        printed = [json.loads(reader.stdout.readline()) for _ in range(3)]
        reader.send_signal(signal.SIGINT)
        assert "octopis: stopped" in reader.communicate(timeout=30)[1]
        assert (reader.returncode, numbers(printed)) == (0, [0, 1, 2])

        closed, nobody = os.pipe()
        os.close(closed)
        cut = shell.start("sub", "--durable", "risk", stdout=nobody)
        os.close(nobody)
        publish(shell, up, range(3, 6))
        assert cut.wait(timeout=30) == 0
        assert numbers(read(shell, 3)) == [3, 4, 5]


def test_in_the_background_it_returns_when_every_broker_knows(shell: Shell):
    out = shell.folder / "out"
    with shell.up("--config", shell.config(SMALL), "--durable", "kept") as up, out.open("wb") as to:
        words = (up.url("b,0"), "n >= 0", "--durable", "risk", "--start", "new", "--count", "2")
        started = shell.start("sub", "--background", *words, stdout=to, stderr=subprocess.DEVNULL)
        assert started.wait(timeout=30) == 0
        publish(shell, up, range(4))
        wait_until(lambda: out.read_text(encoding="utf-8").count("\n") == 2)
        wait_until(lambda: listed(shell)[0]["acknowledged"] == 2)
        assert numbers(read(shell, 1, "--start", "4")) == [3]
        assert [each["acknowledged"] for each in listed(shell)] == [4]


def refused(shell: Shell, folder: Path, *words: str) -> str:
    """Start an overlay that cannot be, and return what it says: one sentence."""
    found = shell.run("overlay", "up", "--port", "0", "--durable", str(folder), *words)
    assert (found.returncode, found.stdout) == (1, "")
    (said,) = found.stderr.splitlines()
    assert said.endswith("so this overlay does not run")
    return said


def test_a_folder_that_cannot_be_used_is_refused_in_a_sentence_and_nothing_runs(shell: Shell):
    config = ("--config", shell.config(SMALL))
    file, kept = shell.folder / "file", shell.folder / "kept"
    file.touch()
    assert f"the store in {file}/" in refused(shell, file, *config)
    assert shell.is_empty()
    with shell.up(*config, "--durable", "kept") as up:
        assert "another process uses it" in refused(shell, kept, *config, "--detach")
        assert up.stop()[0] == 0
    said = refused(shell, kept, "--topology", "figure-7", "--detach")
    assert "it belongs to broker" in said
    assert shell.is_empty()


def test_a_store_that_is_spoilt_meanwhile_is_refused_at_once_and_not_again_and_again(shell: Shell):
    with shell.up("--config", shell.config(SMALL), "--processes", "1", "--durable", "kept") as up:
        form = shell.folder / "kept" / "b,0" / "format.json"
        spoilt, changed = re.subn(r'"version":\d+', '"version":77', form.read_text())
        assert changed == 1
        form.write_text(spoilt)
        (worker,) = shell.workers()
        os.kill(worker, signal.SIGKILL)
        _, said = up.process.communicate(timeout=60)
        assert up.process.returncode == 1
        assert "has format version 77" in said
        assert said.count("starts anew") == 1
