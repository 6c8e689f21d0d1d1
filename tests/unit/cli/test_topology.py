import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from octopis.core.topology import parse_topology

OCTOPIS = Path(sys.executable).with_name("octopis")

CYCLE = """
[topology]
name = "ring"
[acyclic_factor]
edges = [["a", "b"], ["b", "c"], ["c", "a"]]
[connectivity_factor]
clusters = 2
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(octopis):
    return partial(octopis, "topology")


def refused(run, *arguments: str, status: int = 2) -> str:
    """Return the one sentence with which the command refuses."""
    code, printed, error = run(*arguments)
    assert code == status
    assert not printed
    assert error.startswith("octopis: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error.removeprefix("octopis: ").rstrip("\n")


def test_command_as_users_start_it():
    words = [OCTOPIS, "topology", "plan", "paper", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    plan = json.loads(done.stdout)["plan"]
    assert (plan["ims_two_step"], plan["ims_flooding"], plan["tolerated_deaths"]) == (74, 366, 4)


def test_wrong_name_is_one_sentence_and_status_2_and_debug_shows_the_traceback(run):
    sentence = "octopis: the catalogue has no topology 'papper'; did you mean 'paper'?\n"
    assert run("show", "papper") == (2, "", sentence)
    status, printed, error = run("show", "papper", "--debug")
    assert (status, printed) == (2, "")
    assert error.startswith("Traceback (most recent call last)")
    assert error.endswith(sentence)


class TestList:
    def test_names_every_overlay(self, run):
        status, printed, _ = run("list")
        assert status == 0
        assert all(name in printed for name in ("figure-3", "figure-7", "paper"))

    def test_json(self, run):
        rows = json.loads(run("list", "--json")[1])
        sizes = {row["name"]: row["brokers"] for row in rows}
        assert sizes == {"figure-3": 18, "figure-7": 9, "paper": 75}


class TestShow:
    def test_facts_and_brokers(self, run):
        status, printed, _ = run("show", "figure-3")
        assert status == 0
        lines = [line.split() for line in printed.splitlines()]
        assert ["brokers", "18"] in lines
        assert ["b,0", "inner", "a,0", "c,0", "e,0", "b,1", "b,2"] in lines
        assert ["f,2", "edge", "e,2", "f,0", "f,1"] in lines

    def test_one_broker(self, run):
        _, printed, _ = run("show", "paper", "--broker", "B(vi, 3)")
        assert "vi,3    inner  i,3 vii,3 xi,3" in printed
        assert "i,0" not in printed.split()

    def test_json(self, run):
        shown = json.loads(run("show", "figure-7", "--json")[1])
        assert (shown["name"], shown["plan"]["acols"], len(shown["brokers"])) == ("figure-7", 6, 9)
        assert shown["brokers"][3] == {
            "broker": "b,0",
            "kind": "inner",
            "primary_neighbours": ["a,0", "c,0"],
            "secondary_neighbours": ["b,1", "b,2"],
        }

    def test_unknown_broker_is_refused(self, run):
        assert "names 'z', which is not a vertex" in refused(
            run, "show", "paper", "--broker", "z,0"
        )

    def test_cluster_before_region_is_refused(self, run):
        assert "did you mean vi,2?" in refused(run, "show", "paper", "--broker", "2,vi")

    def test_missing_file_is_refused(self, run):
        message = refused(run, "show", "none.toml")
        assert message == "cannot read none.toml: No such file or directory"

    def test_file_without_the_ending_is_read(self, run):
        Path("overlay").write_text('[topology]\nname = "mine"\ncatalogue = "figure-7"\n')
        assert run("show", "overlay")[0] == 0

    def test_name_of_the_catalogue_goes_before_a_file_of_that_name(self, run):
        Path("paper").write_text("no topology")
        assert run("show", "paper")[0] == 0


class TestCheck:
    def test_good_file_is_ok(self, run):
        Path("good.toml").write_text(CYCLE.replace(', ["c", "a"]', ""))
        status, printed, _ = run("check", "good.toml")
        assert status == 0
        assert printed.startswith("ok: ring has all four properties")
        assert ["brokers", "6"] in [line.split() for line in printed.splitlines()]

    def test_json(self, run):
        Path("good.toml").write_text(CYCLE.replace(', ["c", "a"]', ""))
        checked = json.loads(run("check", "good.toml", "--json")[1])
        assert (checked["ok"], checked["name"], checked["plan"]["regions"]) == (True, "ring", 3)

    def test_property_that_fails_is_named_with_its_place(self, run):
        Path("ring.toml").write_text(CYCLE)
        assert refused(run, "check", "ring.toml") == (
            "ring.toml: acyclic property: the acyclic factor has the cycle a - b - c - a; "
            "cut one edge"
        )

    def test_unknown_key_is_refused_with_a_suggestion(self, run):
        Path("ring.toml").write_text(CYCLE.replace("clusters", "cluster"))
        assert refused(run, "check", "ring.toml") == (
            "ring.toml: unknown key 'connectivity_factor.cluster'; did you mean 'clusters'?"
        )

    def test_bad_syntax_is_refused_with_its_line(self, run):
        Path("bad.toml").write_text("[topology\n")
        assert "at line 1" in refused(run, "check", "bad.toml")

    def test_binary_file_is_refused(self, run):
        Path("bad.toml").write_bytes(b"\xff\xfe\x00")
        assert refused(run, "check", "bad.toml") == "bad.toml is not a text file in UTF-8"


class TestPlan:
    def test_plan_of_a_named_overlay(self, run):
        _, printed, _ = run("plan", "paper")
        lines = [" ".join(line.split()) for line in printed.splitlines()]
        assert "IMs per subscription, two-step broadcast 74" in lines
        assert "IMs per subscription, flooding 366" in lines
        assert "broker deaths that always leave the rest connected 4" in lines

    def test_grown_overlay_can_be_shown(self, run):
        arguments = ("--brokers", "20", "--clusters", "3", "--fanout", "2", "--out", "new/g.toml")
        _, printed, _ = run("plan", *arguments)
        assert "wrote new/g.toml" in printed
        shown = json.loads(run("show", "new/g.toml", "--json")[1])
        assert (shown["name"], shown["plan"]["brokers"]) == ("grown-7x3", 21)

    def test_what_is_written_is_what_was_planned(self, run):
        arguments = ("--brokers", "20", "--clusters", "3", "--out", "g.toml", "--json")
        planned = json.loads(run("plan", *arguments)[1])
        scot = parse_topology(Path("g.toml").read_text(), "g.toml").scot
        assert (len(scot.brokers), len(scot.acols)) == (
            planned["plan"]["brokers"],
            planned["plan"]["acols"],
        )

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((), "give the name of an overlay, or both --brokers and --clusters"),
            (("--brokers", "5"), "give the name of an overlay, or both --brokers and --clusters"),
            (("paper", "--clusters", "5"), "not both"),
            (("paper", "--fanout", "5"), "not both"),
            (("--brokers", "0", "--clusters", "5"), "brokers must be 1 or more, not 0"),
            (("--brokers", "-3", "--clusters", "5"), "brokers must be 1 or more, not -3"),
            (("--brokers", "5", "--clusters", "0"), "clusters must be 1 or more, not 0"),
            (("--brokers", "999999999", "--clusters", "2"), "100,000 or fewer"),
            (("--brokers", "1", "--clusters", "999999999"), "is too large"),
            (("--brokers", "many", "--clusters", "2"), "'--brokers'"),
        ],
    )
    def test_numbers_that_make_no_sense_are_refused(
        self, run, arguments: tuple[str, ...], message: str
    ):
        assert message in refused(run, "plan", *arguments)

    def test_file_that_cannot_be_written_is_a_failure(self, run):
        Path("file").write_text("")
        arguments = ("--brokers", "5", "--clusters", "2", "--out", "file/g.toml")
        assert "cannot write file/g.toml" in refused(run, "plan", *arguments, status=1)

    def test_file_that_is_there_is_replaced_only_by_force(self, run):
        grown = ("plan", "--brokers", "5", "--clusters", "2", "--out", "g.toml")
        Path("g.toml").write_text("mine")
        assert refused(run, *grown) == (
            "g.toml is there already: choose another name, or say --force to replace it"
        )
        assert Path("g.toml").read_text() == "mine"
        assert run(*grown, "--force")[0] == 0
        assert "clusters = 2" in Path("g.toml").read_text()


class TestDraw:
    def test_picture_that_is_there_is_replaced_only_by_force(self, run):
        Path("figure-7.png").write_text("mine")
        assert refused(run, "draw", "figure-7").startswith("figure-7.png is there already")
        assert not Path("figure-7.svg").exists()
        assert run("draw", "figure-7", "--force")[0] == 0
        assert Path("figure-7.png").read_bytes().startswith(b"\x89PNG")

    def test_both_formats_are_written_by_default_and_to_the_same_bytes_again(self, run):
        status, printed, _ = run("draw", "figure-7")
        assert (status, printed) == (0, "wrote figure-7.svg\nwrote figure-7.png\n")
        assert Path("figure-7.svg").read_text().startswith("<?xml")
        assert Path("figure-7.png").read_bytes().startswith(b"\x89PNG")
        assert "dc:date" not in Path("figure-7.svg").read_text()
        run("draw", "figure-7", "--out", "new/2.svg", "--out", "new/2.PNG")
        assert Path("figure-7.svg").read_bytes() == Path("new/2.svg").read_bytes()
        assert Path("figure-7.png").read_bytes() == Path("new/2.PNG").read_bytes()

    def test_pictures_of_a_file_are_called_as_the_file(self, run):
        Path("mine.toml").write_text('[topology]\nname = "../x"\ncatalogue = "figure-7"\n')
        assert run("draw", "mine.toml")[1] == "wrote mine.svg\nwrote mine.png\n"
        assert Path("mine.svg").exists()
        assert Path("mine.png").exists()

    @pytest.mark.parametrize("out", ["x.gif", "x", "x.svg.txt"])
    def test_other_endings_are_refused_before_anything_is_written(self, run, out: str):
        message = refused(run, "draw", "figure-7", "--out", "good.svg", "--out", out)
        assert message == f"cannot draw {out}: its name must end in .svg or .png"
        assert not Path("good.svg").exists()

    def test_too_large_an_overlay_is_refused(self, run):
        run("plan", "--brokers", "2000", "--clusters", "4", "--out", "large.toml")
        assert "2,000 brokers are too many to draw" in refused(run, "draw", "large.toml")

    def test_file_that_cannot_be_written_is_a_failure(self, run):
        Path("file").write_text("")
        message = refused(run, "draw", "figure-7", "--out", "file/1.svg", status=1)
        assert message.startswith("cannot write file/1.svg: ")

    def test_letters_that_the_font_lacks_are_told(self, run):
        Path("j.toml").write_text(
            CYCLE.replace(', ["c", "a"]', "").replace("ring", "\N{CJK UNIFIED IDEOGRAPH-6771}")
        )
        status, _, note = run("draw", "j.toml", "--out", "j.png")
        assert status == 0
        assert note == "note: the font lacks some letters of the labels; boxes stand for them\n"
