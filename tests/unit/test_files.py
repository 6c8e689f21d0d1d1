import json
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

from octopis.errors import InvalidConfiguration
from octopis.files import (
    check_local,
    check_new_folder,
    check_writable,
    empty_folder,
    is_draft,
    pretty_json,
    remove_drafts,
    whole_file,
    whole_folder,
    write_json,
    write_private,
)


def test_folder_appears_when_all_went_well(tmp_path: Path):
    target = tmp_path / "a" / "b"
    with whole_folder(target) as folder:
        (folder / "x").write_text("1", encoding="utf-8")
        assert not target.exists()
    assert [path.name for path in target.iterdir()] == ["x"]
    assert [path.name for path in target.parent.iterdir()] == ["b"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_when_something_goes_wrong(tmp_path: Path, fault: type[BaseException]):
    def write() -> None:
        with whole_folder(tmp_path / "out") as folder:
            (folder / "half").touch()
            raise fault

    with pytest.raises(fault):
        write()
    assert list(tmp_path.iterdir()) == []


def test_empty_folder_is_taken_and_a_full_one_is_not(tmp_path: Path):
    target = tmp_path / "out"
    target.mkdir()
    with whole_folder(target) as folder:
        (folder / "x").touch()
    with (
        pytest.raises(InvalidConfiguration, match="is not empty: choose another"),
        whole_folder(target),
    ):
        pytest.fail("must not come here")
    assert (target / "x").exists()


def test_path_below_a_file_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(InvalidConfiguration, match=r"cannot write .*Not a directory"),
        whole_folder(tmp_path / "file" / "out"),
    ):
        pytest.fail("must not come here")


def test_what_was_there_stays_until_its_successor_is_whole(tmp_path: Path):
    target = tmp_path / "out"
    with whole_folder(target) as folder:
        (folder / "old").touch()
    with whole_folder(target, lambda _: None) as folder:
        (folder / "new").touch()
        assert [path.name for path in target.iterdir()] == ["old"]
    assert [path.name for path in target.iterdir()] == ["new"]


def test_file_appears_when_all_went_well_and_its_folders_with_it(tmp_path: Path):
    target = tmp_path / "a" / "b.txt"
    with whole_file(target) as draft:
        draft.write_text("1", encoding="utf-8")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "1"
    assert list(target.parent.iterdir()) == [target]


def test_file_stays_as_it_was_when_something_goes_wrong(tmp_path: Path):
    target = tmp_path / "facts.json"
    write_json(target, {"a": 1})

    def fail() -> None:
        with whole_file(target) as draft:
            draft.write_text("half", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert json.loads(target.read_bytes()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [target]


def test_json_is_for_people_and_takes_what_commands_print():
    facts = {"path": Path("a/b"), "rate": np.float64(0.5), "count": np.int64(3), "none": []}
    assert pretty_json(facts).decode() == (
        '{\n  "path": "a/b",\n  "rate": 0.5,\n  "count": 3,\n  "none": []\n}\n'
    )


def test_drafts_of_a_killed_process_are_known_and_removed(tmp_path: Path):
    for name in (".x.1.draft", "below/.y.1.draft"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "half").touch()
    (tmp_path / ".z.json.1.draft").touch()
    (tmp_path / "mine.draft").touch()
    assert is_draft(tmp_path / ".x.1.draft")
    assert not is_draft(tmp_path / "mine.draft")
    remove_drafts(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["below", "mine.draft"]


def refusal(folder: Path) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        empty_folder(folder)
    return str(caught.value)


def test_folder_is_made_with_its_parents(tmp_path: Path):
    assert empty_folder(tmp_path / "runs" / "trace") == tmp_path / "runs" / "trace"
    assert list((tmp_path / "runs" / "trace").iterdir()) == []


def test_empty_folder_is_taken(tmp_path: Path):
    assert empty_folder(tmp_path) == tmp_path


@pytest.mark.parametrize("name", ["trace", ".", "run:1:x"])
def test_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.chdir(tmp_path)
    folder = empty_folder(Path(name))
    assert str(folder) == str(tmp_path / name)
    assert folder.is_dir()


@pytest.mark.parametrize("name", ["mine.txt", ".hidden"])
def test_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path, name: str):
    (tmp_path / name).write_text("keep me")
    assert refusal(tmp_path) == f"{tmp_path} is not empty: choose another folder, or remove it"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_file_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "mine.txt"
    path.write_text("keep me")
    assert refusal(path) == f"{path} is a file: choose another folder, or remove it"
    assert path.read_text() == "keep me"


def test_folder_below_a_file_is_refused(tmp_path: Path):
    (tmp_path / "mine.txt").touch()
    folder = tmp_path / "mine.txt" / "trace"
    assert refusal(folder) == f"cannot write to {folder}: Not a directory"


def test_name_that_is_too_long_is_refused(tmp_path: Path):
    folder = tmp_path / ("x" * 300)
    assert refusal(folder) == f"cannot write to {folder}: File name too long"


@pytest.mark.parametrize("path", ["s3://bucket/x", "hdfs:/x", "abfss://a@b/c", "dbfs:/x"])
def test_addresses_are_no_paths(path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    said = f"^{path.partition(':')[0]}://.* is an address: give a path on a disk"
    for use in (check_local, check_new_folder, check_writable, empty_folder):
        with pytest.raises(InvalidConfiguration, match=said):
            use(Path(path))
    for write in (whole_folder, whole_file):
        with pytest.raises(InvalidConfiguration, match=said), write(Path(path)):
            pytest.fail("must not come here")
    assert list(tmp_path.iterdir()) == []


def test_address_of_a_file_is_written_as_a_path():
    with pytest.raises(InvalidConfiguration, match=r"^write file:///tmp/x as /tmp/x$"):
        check_local(Path("file:///tmp/x"))


@pytest.mark.parametrize("path", ["a:b", "a", "/s3:/x", "x:/y", "./out:1/x"])
def test_paths_with_colons_are_paths(path: str):
    check_local(Path(path))


def test_new_folder_is_checked_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    check_new_folder(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    for place, said in (("", "is not empty"), ("file", "is a file"), ("file/x", "Not a directory")):
        with pytest.raises(InvalidConfiguration, match=said):
            check_new_folder(tmp_path / place)
    monkeypatch.setattr("os.access", lambda path, _mode: path != tmp_path)  # root may do all
    for place in ("new", "new/x"):
        with pytest.raises(InvalidConfiguration, match=f"cannot write .*{place}: Permission"):
            check_new_folder(tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_draft_goes_though_somebody_still_writes_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rmtree, tries = shutil.rmtree, []

    def remove(folder: Path, **options: bool) -> None:
        rmtree(folder, **options)
        tries.append(folder)
        if len(tries) == 1:
            folder.mkdir()  # by a task that is being stopped

    monkeypatch.setattr("shutil.rmtree", remove)
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "out"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_private_file_is_its_owners_alone_from_the_start(tmp_path: Path):
    before = os.umask(0)
    try:
        write_private(tmp_path / "key", b"secret")
    finally:
        os.umask(before)
    assert (tmp_path / "key").read_bytes() == b"secret"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_private_file_that_is_replaced_keeps_owner_and_group_and_loses_all_others(tmp_path: Path):
    key = tmp_path / "key"
    key.write_bytes(b"old")
    key.chmod(0o644)
    owner = os.geteuid() or 1234  # root may write for somebody else
    os.chown(key, owner, -1)
    write_private(key, b"new")
    assert (key.read_bytes(), stat.S_IMODE(key.stat().st_mode)) == (b"new", 0o640)
    assert key.stat().st_uid == owner
    assert list(tmp_path.iterdir()) == [key]
