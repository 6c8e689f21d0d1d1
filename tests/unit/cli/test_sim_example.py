from pathlib import Path

import pytest

from octopis.core.delivery.options import DeliveryOptions, Level
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.scenario.costs import format_profile, profile_named
from octopis.scenario.document import CutLink, SlowLink
from octopis.scenario.folder import FILES, read_scenario
from octopis.trace import read_summary
from support.sim_command import BURST, SMALL, refused
from support.simulations import digests


class TestExample:
    def test_scenario_is_written_and_the_next_step_is_told(self, sim):
        status, printed, error = sim("example", "--out", "deep/mine", *SMALL)
        assert (status, error) == (0, "")
        assert printed == "Scenario: deep/mine. Next: octopis sim run deep/mine\n"
        assert {path.name for path in Path("deep/mine").iterdir()} == set(FILES)
        assert read_scenario(Path("deep/mine")).document.scenario.name == "mine"

    def test_scenario_has_a_usual_folder(self, sim):
        _, printed, _ = sim("example", *SMALL)
        assert "Next: octopis sim run out/scenario" in printed
        assert read_scenario(Path("out/scenario")).notification_count == 60

    def test_options_stand_in_the_scenario(self, example):
        words = ("--topology", "figure-7", "--algorithm", "dnr", "--profile", "octopis")
        words += ("--subscribers", "12", "--publishers", "2", "--notifications", "7")
        words += ("--high-rate", "9", "--congestion-threshold", "2.5", "--window-ms", "20")
        words += ("--queue-capacity", "77", "--seed", "5")
        words += ("--slow", "a,0:b,0:20:1:2.5", "--slow", "B(b, 1):b,0:1.5:0:9")
        words += ("--cut", "a,2:a,1:3:4")
        scenario = example(*words)
        document = scenario.document
        assert scenario.topology == from_catalogue("figure-7")
        assert document.scenario.seed == 5
        assert document.routing.algorithm is Algorithm.DNR
        assert document.routing.congestion_threshold == 2.5
        assert document.routing.window_ms == 20
        assert document.costs == profile_named("octopis").costs
        assert document.queues.capacity_messages == 77
        assert document.slow_links == (
            SlowLink("a,0", "b,0", 20, 1, 2.5),
            SlowLink("B(b, 1)", "b,0", 1.5, 0, 9),
        )
        assert document.cut_links == (CutLink("a,2", "a,1", 3, 4),)
        assert len(scenario.subscribers) == 12
        assert [each.high_rate for each in scenario.publishers] == [False, False, True]
        assert scenario.notification_count == 2 * 7 + 9

    def test_level_of_delivery_stands_in_the_scenario_where_it_is_asked_for(self, example):
        scenario = example("--algorithm", "tnr", "--level", "memory")
        assert scenario.document.delivery == DeliveryOptions(Level.MEMORY)

    def test_rates_are_per_minute(self, example):
        words = ("--publishers", "1", "--notifications", "2", "--per-minute", "120")
        scenario = example(*words, "--high-rate", "2", "--high-rate-per-minute", "600")
        times = {0: [], 1: []}
        for batch in scenario.publications():
            for publisher, time_ns in zip(batch.publishers, batch.intended_ns, strict=True):
                times[publisher].append(time_ns)
        assert times[0][1] - times[0][0] == 500_000_000
        assert times[1][1] - times[1][0] == 100_000_000

    def test_same_words_give_the_same_scenario_and_another_seed_another(self, sim):
        for name, seed in (("a/mine", "1"), ("b/mine", "1"), ("c/mine", "2")):
            sim("example", "--out", name, *BURST, "--seed", seed)
        assert digests(Path("a/mine")) == digests(Path("b/mine"))
        assert not digests(Path("a/mine")).items() & digests(Path("c/mine")).items()

    def test_overlay_may_come_from_a_file(self, example):
        Path("pair.toml").write_text(
            '[topology]\nname = "pair"\n[acyclic_factor]\nedges = [["x", "y"]]\n'
            "[connectivity_factor]\nclusters = 2\n"
        )
        scenario = example("--topology", "pair.toml", *SMALL)
        assert scenario.topology.name == "pair"
        assert [broker.short for broker in scenario.topology.scot.brokers] == [
            "x,0",
            "x,1",
            "y,0",
            "y,1",
        ]

    def test_profile_may_come_from_a_file(self, example):
        profile = profile_named("octopis")
        Path("mine.toml").write_text(format_profile(profile))
        assert example("--profile", "mine.toml", *SMALL).document.costs == profile.costs

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--profile", "papper"), "there is no profile 'papper'; did you mean 'paper'?"),
            (("--profile", "mine.toml"), "cannot read mine.toml"),
            (("--topology", "figure-33"), "did you mean 'figure-3'?"),
            (("--algorithm", "ospf"), "'ospf' is not one of 'snr', 'dnr', 'bid'"),
            (
                ("--slow", "a,0:b,0:2:0"),
                "--slow takes SOURCE:TARGET:FACTOR:BEGIN_MS:END_MS, not 'a,0:b,0:2:0'",
            ),
            (("--slow", "a,0:b,0:much:0:5"), "--slow takes SOURCE:TARGET:FACTOR:BEGIN_MS:END_MS"),
            (("--slow", ""), "--slow takes SOURCE:TARGET:FACTOR:BEGIN_MS:END_MS, not ''"),
            (
                ("--cut", "a,0:b,0:1"),
                "--cut takes SOURCE:TARGET:BEGIN_MS:END_MS, not 'a,0:b,0:1'",
            ),
            (("--cut", "a,0:b,0:soon:5"), "--cut takes SOURCE:TARGET:BEGIN_MS:END_MS"),
            (("--cut", "a,0:b,0:2:0:5"), "--cut takes SOURCE:TARGET:BEGIN_MS:END_MS"),
            (("--subscribers", "-1"), "subscribers must be 0 or more, not -1"),
            (("--notifications", "-1"), "must be 0 or more, not -1"),
            (("--high-rate", "-5"), "high_rate must be 0 or more, not -5"),
            (("--per-minute", "0"), "per_minute must be between 0.001 and 1e9, not 0.0"),
            (
                ("--per-minute", "1e-10"),
                "per_minute must be between 0.001 and 1e9, not 1e-10",
            ),
            (
                ("--per-minute", "2e9"),
                "per_minute must be between 0.001 and 1e9, not 2000000000.0",
            ),
            (
                ("--high-rate-per-minute", "nan"),
                "high_rate_per_minute must be between 0.001 and 1e9, not nan",
            ),
            (
                ("--level", "memory"),
                'level "memory" needs target routing, and the algorithm is snr',
            ),
            (("--level", "disk"), "Invalid value for '--level'"),
            (("--seed", "-1"), "seed must be 0 or more, not -1"),
            (("--seed", "one"), "Invalid value for '--seed'"),
        ],
    )
    def test_bad_word_is_one_sentence_and_nothing_is_written(
        self, sim, words: tuple[str, ...], message: str
    ):
        assert message in refused(sim, "example", *words)
        assert list(Path().iterdir()) == []

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--slow", "a,0:z,0:2:0:5"), "slow_links[0]: "),
            (("--slow", "a,0:z,0:2:0:5"), "names 'z', which is not a vertex"),
            (("--slow", "a,0:b,9:2:0:5"), "the clusters are 0 to 2"),
            (("--slow", "a,0:c,0:2:0:5"), "no link joins B(a, 0) and B(c, 0)"),
            (("--slow", "a,0:b,0:0.5:0:5"), "slow_links[0]: factor must be 1 or more, not 0.5"),
            (("--slow", "a,0:b,0:2:5:5"), "slow_links[0]: begin_ms must be 0 or more and before"),
            (("--cut", "a,0:b,0:-1:5"), "cut_links[0]: begin_ms must be 0 or more and before"),
            (("--cut", "a,0:e,0:0:5"), "cut_links[0]: no link joins B(a, 0) and B(e, 0)"),
            (
                ("--cut", "a,0:b,0:1000:9000", "--cut", "b,0:a,0:2000:20000"),
                "cut_links[1] and [0] overlap: make them one",
            ),
            (("--queue-capacity", "0"), "queues.capacity_messages must be 1 or more"),
            (("--window-ms", "0"), "routing.window_ms must be 0.001 or more and below 1e6"),
            (("--window-ms", "0.0000001"), "routing.window_ms must be 0.001 or more and below 1e6"),
            (("--congestion-threshold", "nan"), "routing.congestion_threshold must be above 0"),
        ],
    )
    def test_word_that_makes_no_sense_in_the_overlay_is_refused_alike(
        self, sim, words: tuple[str, ...], message: str
    ):
        assert message in refused(sim, "example", *SMALL, *words)
        assert list(Path().iterdir()) == []

    def test_folder_that_holds_something_is_left_alone(self, sim, example):
        example(*SMALL)
        before = digests(Path("scenario"))
        sentence = refused(sim, "example", "--out", "scenario", "--seed", "2")
        assert sentence == "scenario is not empty: choose another folder, or remove it"
        assert digests(Path("scenario")) == before

    def test_file_in_place_of_the_folder_is_left_alone(self, sim):
        Path("mine").write_text("keep me")
        sentence = refused(sim, "example", "--out", "mine", *SMALL)
        assert sentence == "mine is a file: choose another folder, or remove it"
        assert Path("mine").read_text() == "keep me"

    def test_scenario_in_the_present_folder_is_named_after_it(
        self, sim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        assert sim("example", "--out", ".", *SMALL)[0] == 0
        assert read_scenario(Path()).document.scenario.name == "here"

    @pytest.mark.parametrize("name", ["run:1:x", "[bold]x"])
    def test_folder_may_have_any_name(self, sim, name: str):
        status, printed, error = sim("example", "--out", name, *SMALL)
        assert (status, error) == (0, "")
        assert printed == f"Scenario: {name}. Next: octopis sim run {name}\n"
        status, printed, error = sim("run", name, "--out", f"{name} trace")
        assert (status, error) == (0, "")
        assert printed.startswith(f"{name}, seed 1\n")
        assert printed.endswith(f"\nTrace: {name} trace\n")
        assert read_summary(Path(f"{name} trace")).scenario == name
