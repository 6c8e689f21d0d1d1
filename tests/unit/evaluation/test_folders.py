"""One folder holds one evaluation, and whoever asks for another is told what differs."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from octopis.core.topology import format_topology, from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.evaluation.experiments import EvaluationSize
from octopis.evaluation.folders import REQUEST, claim_folder
from support.measures import PAPER, request


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_new_folder_is_made_and_says_what_is_evaluated(tmp_path: Path):
    out = tmp_path / "a" / "b"
    assert claim_folder(out, request(seeds=3)).out == out
    written = json.loads((out / REQUEST).read_text(encoding="utf-8"))
    assert (written["size"], written["seeds"], written["profile"]) == ("quick", 3, "paper")
    assert written["costs"]["send_overhead_us"] == PAPER.costs.send_overhead_us


def test_empty_folder_is_taken(tmp_path: Path):
    claim_folder(tmp_path, request())
    assert tree(tmp_path) == {REQUEST}


def test_same_request_goes_on_with_what_is_there(tmp_path: Path):
    folders = claim_folder(tmp_path, request())
    folders.scenario("mine").mkdir(parents=True)
    before = (tmp_path / REQUEST).stat().st_mtime_ns
    assert claim_folder(tmp_path, request()) == folders
    assert folders.scenario("mine").is_dir()
    assert (tmp_path / REQUEST).stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": "9"}, r"another version \(1.2.3, not 9\)"),
        ({"size": EvaluationSize.FULL}, r"another size \(quick, not full\)"),
        (
            {"topology": format_topology(from_catalogue("figure-3"))},
            r"another topology \(paper, not figure-3\)",
        ),
        ({"profile": "octopis"}, r"another profile \(paper, not octopis\)"),
        (
            {"costs": msgspec.structs.replace(PAPER.costs, routing_us=1)},
            r"another routing_us \(50.*, not 1.*\)",
        ),
        ({"quotes": ["a.csv", "b"]}, r"another quotes \(none, not a\.csv, b\)"),
    ],
)
def test_another_request_is_refused_by_the_name_of_what_differs(
    tmp_path: Path, changes: dict[str, Any], said: str
):
    claim_folder(tmp_path, request())
    before = (tmp_path / REQUEST).read_bytes()
    with pytest.raises(InvalidConfiguration, match=said):
        claim_folder(tmp_path, request(**changes))
    assert (tmp_path / REQUEST).read_bytes() == before


def test_seeds_are_added_to_what_is_there(tmp_path: Path):
    folders = claim_folder(tmp_path, request())
    folders.scenario("mine").mkdir(parents=True)
    assert claim_folder(tmp_path, request(seeds=3)) == folders
    assert folders.scenario("mine").is_dir()
    assert json.loads((tmp_path / REQUEST).read_text(encoding="utf-8"))["seeds"] == 3


def test_seeds_are_never_taken_away(tmp_path: Path):
    claim_folder(tmp_path, request(seeds=3))
    with pytest.raises(InvalidConfiguration, match=r"with 3 seeds: say --seeds 3 or more"):
        claim_folder(tmp_path, request())


def test_request_of_before_there_was_a_choice_is_of_the_papers_overlay(tmp_path: Path):
    claim_folder(tmp_path, request())
    document = json.loads((tmp_path / REQUEST).read_text(encoding="utf-8"))
    del document["topology"]
    (tmp_path / REQUEST).write_text(json.dumps(document), encoding="utf-8")
    claim_folder(tmp_path, request())


def test_evaluation_of_before_there_was_target_routing_is_refused(tmp_path: Path):
    """It lacks runs of TNR, and its metrics are there already."""
    claim_folder(tmp_path, request())
    document = json.loads((tmp_path / REQUEST).read_text(encoding="utf-8"))
    del document["algorithms"]
    (tmp_path / REQUEST).write_text(json.dumps(document), encoding="utf-8")
    said = r"another algorithms \(bid, snr, dnr, not bid, snr, dnr, tnr\)"
    with pytest.raises(InvalidConfiguration, match=said):
        claim_folder(tmp_path, request())


def test_foreign_folder_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / ".work.1.draft").mkdir()
    (tmp_path / "mine.txt").touch()
    with pytest.raises(InvalidConfiguration, match="is not empty and holds no evaluation"):
        claim_folder(tmp_path, request())
    assert tree(tmp_path) == {".work.1.draft", "mine.txt"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "1"}'])
def test_request_that_makes_no_sense_is_refused(tmp_path: Path, text: str):
    (tmp_path / REQUEST).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="is not an evaluation's"):
        claim_folder(tmp_path, request())


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_folder_that_cannot_be_made_is_named(tmp_path: Path, place: str):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidConfiguration, match=rf"cannot write .*{place}: Not a directory"):
        claim_folder(tmp_path / place, request())


def test_drafts_of_a_killed_process_are_removed_and_nothing_else(tmp_path: Path):
    folders = claim_folder(tmp_path, request())
    kept = [folders.quotes, folders.scenario("s"), folders.metrics("m"), folders.runs / "r"]
    drafts = [path.with_name(f".{path.name}.77.draft") for path in kept]
    for folder in (*kept, *drafts):
        folder.mkdir(parents=True)
        (folder / "part").touch()
    claim_folder(tmp_path, request())
    assert all((folder / "part").exists() for folder in kept)
    assert not any(folder.exists() for folder in drafts)


def test_every_part_has_a_place_of_its_own(tmp_path: Path):
    folders = claim_folder(tmp_path, request())
    parts = [
        folders.quotes,
        folders.scenario("x"),
        folders.truth("x"),
        folders.trace("x").parent,
        folders.metrics("x"),
        folders.report,
    ]
    assert len(set(parts)) == 6
    assert folders.page.parent == folders.report
    assert folders.trace("x").name == "run.json", "what is written last"


def test_folder_whose_request_was_never_whole_is_begun_anew(tmp_path: Path):
    (tmp_path / ".evaluation.json.1.draft").write_bytes(b'{"version"')
    claim_folder(tmp_path, request())
    assert [path.name for path in tmp_path.iterdir()] == [REQUEST]
