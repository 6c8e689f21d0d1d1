"""`octopis demo`: all of it, for real; and stopped at several moments, it leaves nothing behind."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from octopis.demo.report import CONTENTS
from support.overlay_command import Shell, wait_until

SMALL = ("demo", "--size", "small", "--out", "out/demo")
LIMIT_S = 240.0


@pytest.fixture
def demos(shell: Shell) -> Shell:
    """A shell whose commands keep their temporary files where we see them."""
    temporary = shell.folder / "tmp"
    temporary.mkdir()
    shell._environment["TMPDIR"] = str(temporary)
    return shell


def leftovers(shell: Shell) -> list[Path]:
    """Return what is neither a demo's report nor Java's own notes about itself."""
    out = shell.folder / "out"
    found = [path for path in out.glob("*") if path.name != "demo"] if out.exists() else []
    return found + list((shell.folder / "tmp").glob("octopis*"))


@contextmanager
def watched(said: Path) -> Iterator[list[dict[str, Any]]]:
    """Look at the page's pulses, as a browser would, until nothing listens there any more."""
    pulses: list[dict[str, Any]] = []

    def look() -> None:
        wait_until(lambda: "Starting Spark" in said.read_text())
        url = said.read_text().splitlines()[0].removeprefix("Watch it live: ")
        while True:
            try:
                with urlopen(f"{url}/overlay/live", timeout=LIMIT_S) as answer:  # noqa: S310 - ours
                    lines = (line for line in answer if line.startswith(b"data: "))
                    found = (json.loads(line.removeprefix(b"data: ")) for line in lines)
                    pulses.extend(each for each in found if "brokers" in each)  # not the last word
            except URLError as failure:
                if isinstance(failure.reason, ConnectionRefusedError):
                    return
            except (OSError, HTTPException):  # this overlay is over
                time.sleep(0.1)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    yield pulses
    looking.join(timeout=10)
    assert not looking.is_alive(), "somebody still listens"


def play_watched(shell: Shell) -> tuple["subprocess.CompletedProcess[str]", list[dict[str, Any]]]:
    """Play the whole demo, and return what it said and what its page showed meanwhile."""
    said = shell.folder / "said"
    with said.open("w") as stream, watched(said) as pulses:
        process = shell.start(*SMALL, "--json", stderr=stream)
        printed, _ = process.communicate(timeout=LIMIT_S)
    text = said.read_text(encoding="utf-8")
    return subprocess.CompletedProcess(process.args, process.returncode, printed, text), pulses


def check_pulses(pulses: list[dict[str, Any]]) -> None:
    """See that the page has shown the rounds, the slowed link, and the broker that was killed."""
    ups = [[each["up"] for each in pulse["brokers"].values()] for pulse in pulses]
    assert [True] * 18 in ups
    assert any(
        "b,2>b,0" in pulse["links"] and pulse["links"]["b,2>b,0"]["overloaded"] for pulse in pulses
    )
    last = [each for pulse in pulses if len(pulse["brokers"]) == 6 for each in pulse["events"]]
    assert {"broker_down", "restart"} & {
        each["kind"] for each in last if each["text"].startswith("b,0 ")
    }


def test_demo_started_again_after_a_stop_is_shown_live_and_delivers_everything_once(
    demos: Shell,
):
    stop_at(demos, "wait for the slowed link", signal.SIGINT)
    assert leftovers(demos) == []
    done, pulses = play_watched(demos)
    assert done.returncode == 0, done.stderr
    assert demos.is_empty()
    check_pulses(pulses)
    assert leftovers(demos) == []
    shown = json.loads(done.stdout)
    bid, snr, dnr, tnr = shown["rounds"]
    for each in (bid, snr, dnr, tnr):
        assert each["due"] == each["delivered"] > 900
        assert (each["lost"], each["twice"], each["unasked"]) == (0, 0, 0)
        assert not each["publishers_waited"]
    assert bid["subscription_ims"] > 2 * snr["subscription_ims"]
    assert snr["subscription_ims"] == dnr["subscription_ims"] == tnr["subscription_ims"] == 20 * 17
    assert tnr["notification_ims"] < snr["notification_ims"]
    assert bid["over_slowed_link"] >= snr["over_slowed_link"] == 300
    assert dnr["over_slowed_link"] < 300
    assert tnr["over_slowed_link"] < 300
    assert dnr["cases"]["I"] > 0
    assert tnr["cases"]["around overload"] == tnr["sent_around"] > 0
    assert snr["overtaken"] == 0
    assert [each["algorithm"] for each in shown["rounds"]] == ["bid", "snr", "dnr", "tnr"]
    fault = shown["fault"]
    assert fault["twice"] == 0
    assert fault["delivered"] == fault["due"] - fault["lost"]
    assert fault["lost"] < fault["published_per_s"] / 2, "what was on the wire, and no more"
    assert 0 < fault["back_after_s"] <= fault["table_whole_after_s"]
    assert [each["behind"] for each in fault["subscribers"]] == [True, False]
    assert fault["sent_around_fault"] > 0
    assert fault["passed_on_since"] > 0
    assert all(each["longest_gap_ms"]["while_dead"] < 5_000 for each in fault["subscribers"])
    assert shown["slowed_link"]["source"] == "b,2"
    report = demos.folder / shown.pop("report")
    assert json.loads((report.parent / "comparison.json").read_bytes()) == shown
    assert {path.name for path in report.parent.iterdir()} == CONTENTS
    page = report.read_text(encoding="utf-8")
    assert f"{snr['due']:,} deliveries" in page
    assert "Starting Spark" in done.stderr
    assert sum(line.startswith("Round") for line in done.stderr.splitlines()) == 4
    runs, dead, back = (
        done.stderr.find(f"B(b, 0) {each}")
        for each in ("is killed", "is dead", "runs again, knows all 2")
    )
    assert 0 < runs < dead < back
    assert "it starts anew" not in done.stderr, "a death that was ordered is no news"


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("Starting Spark", signal.SIGINT),
        ("Making a scenario", signal.SIGTERM),
    ],
)
def test_demo_that_is_stopped_leaves_nothing(demos: Shell, moment: str, number: int):
    stop_at(demos, moment, number)
    assert leftovers(demos) == []
    assert not (demos.folder / "out" / "demo").exists()


def stop_at(shell: Shell, moment: str, number: int) -> None:
    """Start the demo, stop it when it says so, and see that it ends soon and in order."""
    process = shell.start(*SMALL, start_new_session=True)
    assert process.stdout is not None
    for line in process.stdout:
        if moment in line:
            break
    # Ctrl-C goes to all processes of the terminal, a stop from outside to one.
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "octopis: stopped\n")
    wait_until(shell.is_empty)
