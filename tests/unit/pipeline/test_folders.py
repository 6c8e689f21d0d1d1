from pathlib import Path

import pytest

from octopis.errors import InvalidConfiguration
from octopis.files import whole_folder


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
    with pytest.raises(InvalidConfiguration, match="exists: choose another"), whole_folder(target):
        pytest.fail("must not come here")
    assert (target / "x").exists()


def test_path_below_a_file_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(InvalidConfiguration, match=r"cannot write .*Not a directory"),
        whole_folder(tmp_path / "file" / "out"),
    ):
        pytest.fail("must not come here")
