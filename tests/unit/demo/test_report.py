from collections.abc import Callable
from pathlib import Path

import pytest

from octopis.core.routing import Algorithm
from octopis.demo.comparison import FACTS, Compared
from octopis.demo.fault.outcome import FaultOutcome
from octopis.demo.pace import Pace
from octopis.demo.report import (
    COMPARISON,
    ENDINGS,
    PICTURES,
    REPORT,
    check_folder,
    report_page,
    write_pictures,
)
from octopis.demo.rounds import Round
from octopis.demo.workload import Prepared
from octopis.errors import InvalidConfiguration
from octopis.files import whole_folder
from octopis.scenario.folder import Scenario


def test_page_has_the_table_the_pictures_and_what_they_mean(  # noqa: PLR0917 - fixtures
    draft: Path,
    scenario: Scenario,
    rounds: list[Round],
    rows: list[Compared],
    row: Callable[..., Compared],
    outcome: FaultOutcome,
):
    prepared = Prepared(scenario, 936)
    write_pictures(draft, prepared, rounds, outcome)
    names = sorted(path.name for path in draft.iterdir())
    assert names == sorted(f"{name}{ending}" for name in PICTURES for ending in ENDINGS)
    assert "around a fault" in (draft / "way-around.svg").read_text(encoding="utf-8")
    page = report_page(draft, prepared, rows, outcome)
    assert page.count('src="data:image/png;base64,') == 7
    assert all(f"<td>{fact}</td>" in page for fact in FACTS)
    assert '<td class="number good" data-label="TNR">0</td>' in page
    assert "number bad" not in page
    assert "All 936 deliveries" in page
    assert "iCOL to B(b, 0) is slowed down to 40%" in page
    assert "B(b, 0) was killed while 100 notifications a second" in page
    assert '<td data-label="subscriber at">B(a, 0)</td><td data-label="way through it">yes' in page
    faulty = report_page(draft, prepared, [*rows[:3], row(Algorithm.TNR, lost=2)], outcome)
    assert '<td class="number bad" data-label="TNR">2</td>' in faulty
    late = row(Algorithm.DNR, 151, pace=Pace(900.0, 2_400.0, 0.3))
    busy = report_page(draft, prepared, [*rows[:2], late, rows[3]], outcome)
    assert '<p class="note">This machine was too busy for a comparison' in busy
    assert "around the slowed link" in page
    assert "around the slowed link" not in busy


def fill(folder: Path, text: str) -> None:
    for name in (REPORT, COMPARISON):
        (folder / name).write_text(text, encoding="utf-8")


def interrupted_in(draft: Path) -> None:
    fill(draft, "two")
    raise KeyboardInterrupt


def put_in(target: Path) -> None:
    target.mkdir()
    (target / "mine").touch()


def test_folder_takes_the_place_of_an_earlier_one(tmp_path: Path):
    target = tmp_path / "out" / "demo"
    for text in ("one", "two"):
        with whole_folder(target, check_folder) as draft:
            fill(draft, text)
            assert not target.exists() or (target / REPORT).read_text() == "one"
        assert (target / REPORT).read_text() == text
    assert [path.name for path in target.parent.iterdir()] == ["demo"]


def test_failure_leaves_the_earlier_one_and_nothing_else(tmp_path: Path):
    target = tmp_path / "demo"
    with whole_folder(target, check_folder) as draft:
        fill(draft, "one")
    with pytest.raises(KeyboardInterrupt), whole_folder(target, check_folder) as draft:
        interrupted_in(draft)
    assert (target / REPORT).read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_what_is_not_a_demos_is_never_removed(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidConfiguration, match="is a file: choose another"):
        check_folder(tmp_path / "file")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(InvalidConfiguration, match=r"holds thesis\.tex, which is not from a demo"):
        check_folder(tmp_path / "mine")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / REPORT).touch()  # any report is called that
    with pytest.raises(InvalidConfiguration, match=r"holds report\.html, which is not from a demo"):
        check_folder(tmp_path / "odd")


def test_what_was_put_there_meanwhile_is_not_removed_either(tmp_path: Path):
    target = tmp_path / "demo"
    with (
        pytest.raises(InvalidConfiguration, match="holds mine"),
        whole_folder(target, check_folder),
    ):
        put_in(target)
    assert [path.name for path in target.iterdir()] == ["mine"]


def test_empty_folder_is_taken(tmp_path: Path):
    with whole_folder(tmp_path / "demo", check_folder) as draft:
        (tmp_path / "demo").mkdir()
        fill(draft, "one")
    assert (tmp_path / "demo" / REPORT).exists()


def test_place_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidConfiguration, match="cannot write"):
        with whole_folder(tmp_path / "file" / "demo", check_folder):
            pytest.fail("must not come here")
