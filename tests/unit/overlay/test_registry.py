import os
from collections.abc import Callable
from pathlib import Path

import pytest

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.overlay.registry import (
    OverlayState,
    StateFolder,
    find,
    is_running,
    overlays,
    state_base,
)


def state(folder: StateFolder, started_ns: int = 1) -> OverlayState:
    return OverlayState(
        name=folder.name,
        topology="small",
        algorithm="dnr",
        pid=1,
        started_ns=started_ns,
        ready=True,
        folder=str(folder.path),
        addresses={"a,0": "127.0.0.1:7400", "b,0": "127.0.0.1:7401"},
        processes=[["a,0", "b,0"]],
        stop_s=1.0,
    )


def test_place_is_the_given_one_then_the_variable_then_the_runtime_folder():
    environment = {"OCTOPIS_STATE": "/one", "XDG_RUNTIME_DIR": "/two"}
    assert state_base(Path("/given"), environment) == Path("/given")
    assert state_base(None, environment) == Path("/one")
    assert state_base(None, {"XDG_RUNTIME_DIR": "/two"}) == Path("/two/octopis")
    assert state_base(None, {}).name.startswith("octopis-")


def test_running_overlay_is_found_and_goes_with_its_end(tmp_path: Path):
    with StateFolder(tmp_path, "small-7400") as folder:
        folder.write(state(folder))
        found = find(tmp_path, None)
        assert found == find(tmp_path, "small-7400") == state(folder)
        assert found.url == "octopis://127.0.0.1:7400"
        assert is_running(found)
    assert not folder.path.exists()
    with pytest.raises(OperationFailed, match="no overlay runs: start one"):
        find(tmp_path, None)


def test_second_overlay_of_the_same_name_is_refused(tmp_path: Path):
    with StateFolder(tmp_path, "small-7400"):
        with pytest.raises(OperationFailed, match="small-7400 runs already"):
            StateFolder(tmp_path, "small-7400").__enter__()


def test_overlay_that_failed_is_stale_keeps_its_logs_and_makes_room(tmp_path: Path):
    folder = StateFolder(tmp_path, "small-7400")
    folder.__enter__()
    folder.write(state(folder))
    (folder.path / "process-0.log").write_text("why", encoding="utf-8")
    folder.__exit__(OperationFailed, OperationFailed("why"), None)
    assert [len(each) for each in overlays(tmp_path)] == [0, 1]
    assert (folder.path / "process-0.log").exists()
    with pytest.raises(OperationFailed, match=r"small-7400, started .* ended without an orderly"):
        find(tmp_path, None)
    with StateFolder(tmp_path, "small-7400") as again:
        assert not (again.path / "process-0.log").exists()


def test_latest_of_several_is_meant_unless_only_one_may_be(tmp_path: Path):
    with StateFolder(tmp_path, "z-7400") as first, StateFolder(tmp_path, "a-7500") as second:
        first.write(state(first, started_ns=1))
        second.write(state(second, started_ns=2))
        assert find(tmp_path, None).name == "a-7500"
        assert find(tmp_path, "z-7400").name == "z-7400"
        with pytest.raises(InvalidConfiguration, match="say which of z-7400, a-7500"):
            find(tmp_path, None, only=True)
        with pytest.raises(InvalidConfiguration, match="did you mean 'z-7400'"):
            find(tmp_path, "z-740")


def test_names_are_safe_in_paths(tmp_path: Path):
    with StateFolder(tmp_path, "../my overlay-1") as folder:
        assert folder.path.parent == tmp_path


def test_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(OperationFailed, match="choose another place with --state"):
        StateFolder(tmp_path / "file", "small-1").__enter__()


def test_file_that_is_no_state_is_named(tmp_path: Path):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "state.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match=r"odd/state\.json is not the state"):
        overlays(tmp_path)


NOBODY = 65534


def given_away(place: Path) -> None:
    os.chown(place, NOBODY, NOBODY)


def linked_by_another(place: Path) -> None:
    mine = place.rename(place.with_name("mine"))
    place.symlink_to(mine)
    os.chown(place, NOBODY, NOBODY, follow_symlinks=False)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda place: place.chmod(0o777), "can be written by every user"),
        (given_away, "is another user's"),
        (linked_by_another, "is another user's"),
    ],
)
def test_nobody_else_says_which_overlays_run(
    tmp_path: Path, change: Callable[[Path], None], reason: str
):
    """Whoever could would choose what commands trust, where they log in, and what they stop."""
    place = tmp_path / "state"
    with StateFolder(place, "small-7400") as folder:
        folder.write(state(folder))
        assert find(place, None).name == "small-7400"
        try:
            change(place)
        except PermissionError:
            pytest.skip("only root can give files away")
        for look in (lambda: overlays(place), lambda: find(place, "small-7400")):
            with pytest.raises(OperationFailed, match=f"{reason}: choose another with --state"):
                look()
        with pytest.raises(OperationFailed, match=reason):
            StateFolder(place, "other-7500").__enter__()
