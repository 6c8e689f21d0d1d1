"""Durable subscriptions on the command line: what is said before and after brokers are asked."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from octopis.broker.settings import Durability
from octopis.cli.live.disk_output import disk_facts, state_of
from octopis.cli.live.secrets import VARIABLE, secret_of
from octopis.cli.options import overlay_to_run
from octopis.core.routing import Algorithm
from octopis.core.wire.durable import DurableInfo
from octopis.errors import InvalidConfiguration, InvalidSubscription, OperationFailed
from octopis.overlay.durables import Found, Hosted
from octopis.overlay.registry import OverlayState, StateFolder
from support.live import in_a_thread, line, overlay


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OCTOPIS_STATE", str(tmp_path / "state"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "state"


def info(name: str, **facts: object) -> DurableInfo:
    given = {
        "filter": "x > 1",
        "policy": "refuse",
        "epoch": 1,
        "acked": 3,
        "end": 5,
        "bytes": 82,
        "dropped": 0,
        "suspended": False,
        "shared": True,
        "created_ns": 1,
        "used_ns": 2,
    }
    return DurableInfo(name=name, **{**given, **facts})  # type: ignore[arg-type]


# What is wrong is found before anybody is asked


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say what to subscribe to"),
        (("x > 1", "--start", "new"), "say --durable NAME"),
        (("x > 1", "--policy", "suspend"), "say --durable NAME"),
        (("x > 1", "--count", "0"), "say --durable NAME"),
        (("x > 1", "--durable", "risk", "--start", "-1"), "--start is earliest, new or a position"),
        (("x > 1", "--durable", "risk", "--start", "last"), "such as 17, not 'last'"),
        (("x > 1", "x > 2", "--durable", "risk"), "one filter, not 2: join them with OR"),
        (("x > 1", "--secret-file", "nothing"), "cannot read nothing"),
    ],
)
def test_sub_refuses_what_makes_no_sense(octopis, url: str, words: tuple[str, ...], said: str):
    status, printed, found = octopis("sub", url, *words)
    assert (status, printed, said in found) == (2, "", True), found


def test_policy_is_one_of_those_that_there_are(octopis, url: str):
    status, _, said = octopis("sub", url, "x > 1", "--durable", "risk", "--policy", "lose")
    assert status == 2
    assert "drop_oldest" in said


def test_a_secret_comes_from_a_file_or_else_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert secret_of(None) is None
    monkeypatch.setenv(VARIABLE, "of the environment")
    assert secret_of(None) == "of the environment"
    file = tmp_path / "secret"
    file.write_text("of the file\n", encoding="utf-8")
    assert secret_of(file) == "of the file"
    for content in ("\n", "x" * 257):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(InvalidConfiguration, match="1 to 256 characters"):
            secret_of(file)


def test_a_folder_is_seen_from_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    file = Path("overlay.toml")
    file.write_text(
        '[topology]\ncatalogue = "figure-7"\n[durability]\nfolder = "kept"\n', encoding="utf-8"
    )
    for durable, folder in ((None, tmp_path / "kept"), (Path("other"), tmp_path / "other")):
        found = overlay_to_run(None, file, None, durable).configuration
        assert found.durability.folder == str(folder)
    assert overlay_to_run("figure-7", None, None, None).configuration.durability.folder == ""


def test_a_folder_without_channels_is_refused(octopis, tmp_path: Path):
    status, _, said = octopis(
        "overlay", "up", "--durable", str(tmp_path / "kept"), "--algorithm", "snr"
    )
    assert (status, "only under target routing" in said) == (2, True)
    assert not (tmp_path / "kept").exists()


# What brokers say


def test_the_one_that_is_wanted_is_found_where_it_lives_now():
    moved, here = info("risk", moved_to="b,0"), info("risk")
    found = Found([Hosted("a,0", moved), Hosted("b,0", here)], {})
    assert found.named("risk") == ("b,0", here)
    with pytest.raises(InvalidSubscription, match="did you mean 'risk'"):
        found.named("rsik")
    with pytest.raises(OperationFailed, match="no answer from c,0"):
        Found([], {"c,0": "it is dead"}).named("risk")


def test_what_is_out_of_the_ordinary_is_said_in_words():
    assert state_of(suspended=False, dropped=0) == "ok"
    assert state_of(suspended=True, dropped=1_000) == "suspended, 1,000 dropped"
    assert state_of(suspended=False, dropped=0, moved_to="b,0") == "moved to b,0"
    soon = time.time_ns() + 125 * 10**9 + 10**8
    said = state_of(suspended=False, dropped=0, ends_ns=soon)
    assert said.startswith("unused: ends in 2 min ")
    sums = {"bytes": 1_000, "records": 2, "damages": 1, "full": ["a,0"], "failed": ["b,0"]}
    told = dict(disk_facts({**sums, "durables": 1, "lag": 3}))
    assert told["disks that are full"] == "a,0"
    assert told["disks that have failed"] == "b,0"
    assert told["damaged places on disk"] == 1
    assert disk_facts({}) == []


def noted(base: Path, url: str) -> StateFolder:
    """Note an overlay of one broker as running here."""
    folder = StateFolder(base, "one-1")
    folder.__enter__()
    state = OverlayState(
        name="one-1",
        topology="one",
        algorithm="tnr",
        pid=1,
        started_ns=1,
        ready=True,
        folder=str(folder.path),
        addresses={"a,0": url.removeprefix("octopis://")},
        processes=[["a,0"]],
        stop_s=1.0,
    )
    folder.write(state)
    return folder


@pytest.fixture
def url(tmp_path: Path, own_state: Path) -> Iterator[str]:
    """Return where a broker with a disk is, which commands find by themselves, too."""
    durability = Durability(str(tmp_path / "kept"))
    with in_a_thread(overlay(line(1), Algorithm.TNR, durability=durability)) as urls:
        folder = noted(own_state, urls["a,0"])
        yield urls["a,0"]
        folder.__exit__(None)


def test_a_secret_keeps_others_away(octopis, url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "mine")
    made = ("sub", url, "x > 1", "--durable", "risk", "--count", "0")
    assert octopis(*made)[0] == 0
    assert octopis("pub", url, "x=2")[0] == 0
    monkeypatch.setenv(VARIABLE, "another's")
    for words in (made, ("durable", "drop", "risk", "--yes")):
        status, _, said = octopis(*words)
        assert (status, "is another's" in said) == (2, True)
    shown = octopis("durable", "show", "risk")[1]
    assert "those who have its secret" in shown
    monkeypatch.setenv(VARIABLE, "mine")
    assert octopis("durable", "drop", "risk")[2].startswith("octopis: say --yes to drop 'risk'")
    status, printed, _ = octopis("durable", "drop", "risk", "--yes")
    assert (status, printed) == (0, "risk at a,0 is dropped.\n")
    assert "has no durable subscription" in octopis("durable", "list")[1]


def test_brokers_without_a_disk_say_what_to_do(octopis, own_state: Path):
    with in_a_thread(overlay(line(1), Algorithm.TNR)) as urls:
        folder = noted(own_state, urls["a,0"])
        for words in (("durable", "list"), ("sub", "x > 1", "--durable", "risk")):
            status, _, said = octopis(*words)
            assert (status, "--durable" in said) == (2, True)
        folder.__exit__(None)
