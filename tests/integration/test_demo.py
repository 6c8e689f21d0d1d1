"""`octopis demo`: all of it, for real; and stopped at several moments, it leaves nothing behind."""

import json
import os
import signal
from pathlib import Path

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


def test_demo_that_was_stopped_while_it_plays_delivers_everything_once_when_started_again(
    demos: Shell,
):
    stop_at(demos, "wait for the slowed link", signal.SIGINT)
    assert leftovers(demos) == []
    done = demos.run(*SMALL, "--json", limit_s=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert demos.is_empty()
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
