import json
from functools import partial
from pathlib import Path

import pytest

CASE_1 = (
    "figure-7",
    "price=12",
    "--publish",
    "b,2",
    "--subscriber",
    "S1=c,0: price > 10",
    "--subscriber",
    "S2=c,1",
    "--subscriber",
    "S3=B(a, 2):price > 20",
    "--overloaded",
    "b,2:b,0",
)
QUESTION = """
overlay = "figure-7"
publish = "b,2"
notification = { price = 12 }
overloaded = ["b,2:b,0"]

[subscribers]
S1 = "c,0: price > 10"
S2 = "c,1"
S3 = "a,2: price > 20"

[queues]
"b,2:c,2" = 3
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(octopis):
    return partial(octopis, "route")


def refused(run, *arguments: str) -> str:
    """Return the one sentence with which the command refuses."""
    code, printed, error = run(*arguments)
    assert (code, printed) == (2, "")
    assert error.startswith("octopis: ")
    assert error.count("\n") == 1
    return error.removeprefix("octopis: ").rstrip("\n")


class TestExplain:
    def test_tree_of_dnr(self, run):
        status, printed, error = run("explain", *CASE_1, "--algorithm", "dnr")
        assert (status, error) == (0, "")
        lines = [line.rstrip() for line in printed.splitlines()]
        assert lines[:6] == [
            "DNR: 4 IMs, case I x1, 2 of 3 subscribers reached",
            "B(b, 2) publishes price = 12",
            "└── iCOL to B(b, 1) CBV_p 001 - case I: the free iCOL with the shortest queue takes "
            "the pending clusters along",
            "    ├── aCOL to B(c, 1) - a matching subscription lies behind it => S2",
            "    └── iCOL to B(b, 0) - the notification carries this cluster as pending",
            "        └── aCOL to B(c, 0) - a matching subscription lies behind it => S1",
        ]

    def test_tree_of_tnr_names_targets_tried_clusters_and_reasons(self, run):
        faults = ("--algorithm", "tnr", "--cut", "c,2:b,2", "--dead", "c,1")
        status, printed, error = run("explain", *CASE_1[:-2], *faults)
        assert (status, error) == (0, "")
        assert [line.rstrip() for line in printed.splitlines()][:6] == [
            "TNR: 3 IMs, along the tree x1, around a fault x2, 1 of 3 subscribers reached, "
            "lost: S2",
            "B(b, 2) publishes price = 12",
            "└── iCOL to B(b, 0) targets c,0 c,1 tried 2 (down) - around a dead broker or a cut "
            "link, by way of another cluster",
            "    └── aCOL to B(c, 0) targets c,0 c,1 - targets lie behind it in the tree => S1",
            "        └── iCOL to B(c, 2) targets c,1 tried 0 (down) - around a dead broker or a "
            "cut link, by way of another cluster",
            "            └── no way leads on to B(c, 1) (dead): lost",
        ]

    def test_what_others_lose_at_faults_is_shown(self, run):
        faults = ("--cut", "c,0:b,0", "--dead", "c,1")
        _, printed, _ = run("explain", *CASE_1[:-2], *faults)
        assert printed.count("aCOL to B(c, 0) - the link is cut: lost") == 2
        assert "aCOL to B(c, 0) BIDs c,0 - the link is cut: lost" in printed
        assert printed.count("aCOL to B(c, 1) - a dead broker: lost") == 2
        totals = [line.split()[-4:] for line in printed.splitlines() if "path to" in line]
        assert totals == [
            ["lost", "lost", "lost", "3"],
            ["lost", "lost", "lost", "lost"],
            ["no", "match", "no", "match"],
        ]

    def test_help_says_what_each_algorithm_is(self, run):
        printed = " ".join(run("explain", "--help")[1].replace("│", " ").split())
        assert "tnr: ours, matches once, fewer messages, around overload and faults" in printed

    def test_sum_comes_first(self, run):
        printed = run("explain", *CASE_1, "--algorithm", "snr")[1]
        assert printed.startswith("SNR: 4 IMs, 2 of 3 subscribers reached\n")

    def test_all_algorithms_stand_side_by_side_by_default(self, run):
        _, printed, _ = run("explain", *CASE_1)
        cells = [line.split() for line in printed.splitlines()]
        assert ["SNR", "DNR", "BID", "TNR"] in cells
        assert ["IMs", "4", "4", "4", "3"] in cells
        assert "(overloaded)" in printed
        assert "BIDs c,0" in printed
        assert printed.count("no match") == 4

    def test_json(self, run):
        answers = json.loads(run("explain", *CASE_1, "--json")[1])
        assert [(each["algorithm"], each["ims"]) for each in answers] == [
            ("snr", 4),
            ("dnr", 4),
            ("bid", 4),
            ("tnr", 3),
        ]
        assert answers[1]["subscribers"][0]["path"] == ["b,2", "b,1", "b,0", "c,0"]

    def test_algorithms_are_explained_once_in_the_order_given(self, run):
        chosen = ("--algorithm", "bid", "--algorithm", "snr", "--algorithm", "bid")
        answers = json.loads(run("explain", *CASE_1, *chosen, "--json")[1])
        assert [each["algorithm"] for each in answers] == ["bid", "snr"]

    def test_links_may_be_written_with_arrows(self, run):
        answer = run("explain", *CASE_1)
        for link in ("b,2>b,0", "b,2->b,0", "B(b, 2) -> B(b, 0)"):
            assert run("explain", *CASE_1[:-1], link) == answer

    def test_queues_choose_the_least_loaded_link(self, run):
        words = ("figure-7", "--publish", "b,2", "--algorithm", "dnr", "--json")
        words += ("--subscriber", "S1=a,2", "--subscriber", "S2=c,2", "--subscriber", "S3=b,0")
        words += ("--overloaded", "b,2:b,0")
        for queue, carrier in (("b,2:a,2=1", "c,2"), ("b,2:c,2=1", "a,2")):
            (answer,) = json.loads(run("explain", *words, "--queue", queue)[1])
            carrying = [hop["target"] for hop in answer["hops"] if hop["cbv_p"]]
            assert carrying == [carrier]


class TestFile:
    def test_file_asks_the_same_as_the_words(self, run):
        Path("question.toml").write_text(QUESTION)
        assert run("explain", "--file", "question.toml")[1] == run("explain", *CASE_1)[1]

    def test_file_may_have_faults(self, run):
        text = QUESTION.replace("[subs", 'dead = ["a,1"]\ncut = ["b,1:c,1"]\n\n[subs')
        Path("question.toml").write_text(text)
        said = run("explain", *CASE_1, "--dead", "a,1", "--cut", "c,1:b,1")[1]
        assert run("explain", "--file", "question.toml")[1] == said
        assert "the link is cut: lost" in said
        assert "give no part of it" in refused(
            run, "explain", "--dead", "a,1", "--file", "question.toml"
        )

    def test_question_in_two_places_is_refused(self, run):
        Path("question.toml").write_text(QUESTION)
        assert "give no part of it" in refused(
            run, "explain", "figure-7", "--file", "question.toml"
        )

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('"figure-7"', '"figure-77"', "did you mean 'figure-7'?"),
            ("publish", "publsh", "unknown key 'publsh'; did you mean 'publish'?"),
            ('"b,2"', '"z,2"', "the regions are a, b, c"),
            ("price > 10", "price >", "the filter of S1: expected"),
            ("= 3", '= "3"', "queues"),
            ("{ price = 12 }", "{ price = nan }", "attribute 'price' is nan"),
        ],
    )
    def test_fault_is_one_sentence_that_names_the_file(self, run, old: str, new: str, message: str):
        Path("question.toml").write_text(QUESTION.replace(old, new, 1))
        sentence = refused(run, "explain", "--file", "question.toml")
        assert sentence.startswith("question.toml: ")
        assert message in sentence


class TestRefusals:
    ASKED = ("explain", "figure-7", "--publish", "b,2")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--subscriber", "S1=z,0"), "names 'z', which is not a vertex"),
            (("--subscriber", "S1=0,b"), "did you mean b,0?"),
            (("--subscriber", "S1=b,9"), "the clusters are 0 to 2"),
            (("--subscriber", "b,0"), "such as \"S1=c,0:price > 10\", not 'b,0'"),
            (("--subscriber", "=b,0"), "write a subscriber as name=broker:filter"),
            (("--subscriber", "S1=b,0:price >"), "the filter of S1: expected"),
            (("--subscriber", "S1=b,0", "--subscriber", "S1=c,0"), "two subscribers"),
            (("--overloaded", "b,2:c,0"), "no link joins B(b, 2) and B(c, 0)"),
            (("--overloaded", "b,2"), "write a link as from:to, such as b,2:b,0, not 'b,2'"),
            (("--overloaded", "b,2:b,0", "--queue", "b,2:b,0=0"), "with an empty queue"),
            (("--queue", "b,2:b,0"), "such as b,2:c,2=5, not 'b,2:b,0'"),
            (("--queue", "b,2:b,0=-1"), "has 0 to 1,000,000,000 messages, not -1"),
            (("price",), "write attributes as name=value"),
            (("price=1", "price=2"), "the attribute 'price' is given twice"),
            (("--algorithm", "ospf"), "is not one of 'snr', 'dnr', 'bid', 'tnr'"),
            (("--dead", "b,2"), "B(b, 2) is dead: nobody can publish there"),
            (("--dead", "b,9"), "the clusters are 0 to 2"),
            (("--cut", "b,2:c,0"), "no link joins B(b, 2) and B(c, 0)"),
            (("--cut", "b,2"), "write a link as from:to, such as b,2:b,0, not 'b,2'"),
            (("--cut", "b,2:b,0", "--overloaded", "b,2:b,0"), "is down: nothing can wait for it"),
            (("--svg", "paths.pdf"), "must end in .svg or .png"),
        ],
    )
    def test_bad_part_is_one_sentence(self, run, words: tuple[str, ...], message: str):
        assert message in refused(run, *self.ASKED, *words)

    def test_unknown_broker_is_refused_with_those_that_are_there(self, run):
        message = refused(run, "explain", "figure-7", "--publish", "b,3")
        assert message == (
            "the broker 'b,3' names 3, which is not a vertex; the clusters are 0 to 2"
        )

    def test_missing_parts(self, run):
        assert "name an overlay" in refused(run, "explain")
        assert "say where the publisher is" in refused(run, "explain", "figure-7")


class TestPictures:
    def test_one_picture_for_each_algorithm(self, run):
        _, printed, _ = run("explain", *CASE_1, "--svg", "out/path.svg")
        assert sorted(path.name for path in Path("out").iterdir()) == [
            "path-bid.svg",
            "path-dnr.svg",
            "path-snr.svg",
            "path-tnr.svg",
        ]
        assert "wrote out/path-dnr.svg" in printed

    def test_same_picture_to_the_byte_under_its_own_name(self, run):
        run("explain", *CASE_1, "--algorithm", "dnr", "--svg", "one.svg", "--png", "one.png")
        run("explain", *CASE_1, "--algorithm", "dnr", "--svg", "other.svg")
        assert Path("one.svg").read_bytes() == Path("other.svg").read_bytes()
        assert Path("one.png").read_bytes().startswith(b"\x89PNG")

    def test_json_stays_json_when_pictures_are_drawn(self, run):
        printed = run("explain", *CASE_1, "--algorithm", "snr", "--json", "--png", "path.png")[1]
        assert len(json.loads(printed)) == 1
        assert Path("path.png").exists()


class TestCases:
    def test_table(self, run):
        status, printed, _ = run("cases")
        assert status == 0
        names = [line.split()[0] for line in printed.splitlines()[2:]]
        assert names == ["static", "I", "II", "III"]

    def test_json(self, run):
        shown = json.loads(run("cases", "--json")[1])
        assert shown[1] == {
            "name": "I",
            "overloaded_icol": True,
            "free_icol": True,
            "free_acol": None,
            "carrier": "the copy on the free target iCOL with the shortest queue",
            "reason": "I",
        }

    def test_picture(self, run):
        _, printed, _ = run("cases", "--svg", "cases.svg", "--png", "cases.png")
        assert printed.endswith("wrote cases.svg\nwrote cases.png\n")
        assert "<svg" in Path("cases.svg").read_text(encoding="utf-8")

    def test_bad_name_of_a_picture_is_refused_before_anything_is_printed(self, run):
        assert "must end in .svg or .png" in refused(run, "cases", "--svg", "cases.gif")

    def test_pictures_that_are_there_are_replaced_only_by_force(self, run):
        Path("path-snr.svg").write_text("mine", encoding="utf-8")
        for words in (
            ("explain", *CASE_1, "--svg", "path.svg"),
            ("cases", "--svg", "path-snr.svg"),
        ):
            said = refused(run, *words)
            assert said.startswith("path-snr.svg is there already: choose another name")
            assert Path("path-snr.svg").read_text(encoding="utf-8") == "mine"
        assert run("cases", "--svg", "path-snr.svg", "--force")[0] == 0
        assert "<svg" in Path("path-snr.svg").read_text(encoding="utf-8")
