import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.scenario.example import write_example
from octopis.scenario.folder import (
    DOCUMENT,
    FILES,
    NOTIFICATIONS,
    PUBLISHERS,
    SUBSCRIPTIONS,
    read_scenario,
    write_scenario,
)
from octopis.scenario.plan import ScenarioPlan


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenarios") / "small"
    routing = RoutingOptions(Algorithm.DNR)
    plan = ScenarioPlan(routing=routing, subscribers=5, publishers=2, notifications_each=3, seed=9)
    write_example(plan, folder)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "scenario")


def refusal(folder: Path) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        read_scenario(folder)
    return str(caught.value)


def test_scenario_is_a_document_and_three_tables(folder: Path):
    assert {path.name for path in folder.iterdir()} == set(FILES)


def test_scenario_holds_what_the_folder_says(folder: Path):
    scenario = read_scenario(folder)
    assert scenario.folder == folder
    assert scenario.document.scenario.seed == 9
    assert scenario.document.routing.algorithm is Algorithm.DNR
    assert scenario.topology == from_catalogue("figure-3")
    assert [each.client for each in scenario.subscribers] == [f"c0000{n}" for n in range(5)]
    assert [each.name for each in scenario.publishers] == ["p0000", "p0001"]
    assert scenario.notification_count == 6


def test_publications_can_be_read_more_than_once(folder: Path):
    scenario = read_scenario(folder)
    first, again = list(scenario.publications()), list(scenario.publications())
    assert first == again
    assert sum(len(batch.publishers) for batch in first) == 6


def test_digest_depends_on_the_content_alone(written: Path, folder: Path):
    assert read_scenario(folder).digest == read_scenario(written).digest


@pytest.mark.parametrize("name", FILES)
def test_digest_changes_when_any_file_changes(folder: Path, name: str):
    before = read_scenario(folder).digest
    path = folder / name
    if name == DOCUMENT:
        path.write_text(path.read_text() + "# one comment more\n")
    else:
        pq.write_table(pq.read_table(path), path, compression="none")
    assert read_scenario(folder).digest != before


@pytest.mark.parametrize("name", [SUBSCRIPTIONS, PUBLISHERS, NOTIFICATIONS])
def test_missing_table_is_named(folder: Path, name: str):
    (folder / name).unlink()
    assert refusal(folder) == f"there is no {folder / name}"


def test_missing_document_is_named_with_what_to_do(tmp_path: Path):
    path = tmp_path / "nothing" / DOCUMENT
    assert refusal(tmp_path / "nothing") == (
        f"there is no {path}; make a scenario with octopis sim example"
    )


def test_document_that_is_no_text_is_refused(folder: Path):
    (folder / DOCUMENT).write_bytes(b"\xff\xfe[scenario]")
    assert refusal(folder).startswith(f"cannot read {folder / DOCUMENT}: ")


def test_document_that_is_a_folder_is_refused(folder: Path):
    (folder / DOCUMENT).unlink()
    (folder / DOCUMENT).mkdir()
    assert refusal(folder).startswith(f"cannot read {folder / DOCUMENT}: ")


def test_fault_in_the_document_is_refused_with_its_path(folder: Path):
    path = folder / DOCUMENT
    path.write_text(path.read_text().replace("seed", "sed", 1))
    message = f"{path}: unknown key 'scenario.sed'; did you mean 'seed'?"
    assert refusal(folder) == message


def tables(folder: Path):
    return tuple(pq.read_table(folder / n) for n in (SUBSCRIPTIONS, PUBLISHERS, NOTIFICATIONS))


def test_what_is_written_reads_back(folder: Path, tmp_path: Path):
    copy = tmp_path / "deep" / "copy"
    write_scenario(copy, (folder / DOCUMENT).read_text(), *tables(folder))
    assert tables(copy) == tables(folder)
    one, other = read_scenario(copy), read_scenario(folder)
    assert one.document == other.document
    assert one.subscribers == other.subscribers


def test_empty_folder_is_taken(folder: Path, tmp_path: Path):
    empty = tmp_path / "empty"
    empty.mkdir()
    write_scenario(empty, (folder / DOCUMENT).read_text(), *tables(folder))
    assert {path.name for path in empty.iterdir()} == set(FILES)


def test_folder_that_holds_something_is_left_alone(folder: Path, tmp_path: Path):
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine.txt").write_text("keep me")
    with pytest.raises(InvalidConfiguration) as caught:
        write_scenario(taken, (folder / DOCUMENT).read_text(), *tables(folder))
    assert str(caught.value) == f"{taken} is not empty: choose another folder, or remove it"
    assert [path.name for path in taken.iterdir()] == ["mine.txt"]


def test_file_in_place_of_the_folder_is_left_alone(folder: Path, tmp_path: Path):
    (tmp_path / "file").write_text("keep me")
    with pytest.raises(InvalidConfiguration, match="is a file: choose another folder"):
        write_scenario(tmp_path / "file", (folder / DOCUMENT).read_text(), *tables(folder))
    assert (tmp_path / "file").read_text() == "keep me"


def test_folder_with_a_colon_in_its_name_is_no_address(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write_scenario(Path("run:1:x"), (folder / DOCUMENT).read_text(), *tables(folder))
    one, other = read_scenario(Path("run:1:x")), read_scenario(folder)
    assert one.subscribers == other.subscribers
    assert list(one.publications()) == list(other.publications())


def test_document_may_be_named_in_place_of_its_folder(folder: Path):
    assert read_scenario(folder / DOCUMENT) == read_scenario(folder)


def test_document_that_makes_no_sense_is_refused_and_nothing_is_written(
    folder: Path, tmp_path: Path
):
    text = (folder / DOCUMENT).read_text().replace("seed", "sed", 1)
    with pytest.raises(InvalidConfiguration, match=r"unknown key 'scenario\.sed'"):
        write_scenario(tmp_path / "new", text, *tables(folder))
    assert not (tmp_path / "new").exists()
