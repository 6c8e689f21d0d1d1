from pathlib import Path

import pytest

from octopis.errors import InvalidConfiguration
from octopis.files import empty_folder


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
