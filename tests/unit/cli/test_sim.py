import json
import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.scenario.costs import format_profile, profile_named
from octopis.scenario.document import CutLink, SlowLink
from octopis.scenario.folder import FILES, read_scenario
from octopis.trace import Level, read_summary
from support.sim_command import BURST, SMALL, edit, facts, refused
from support.simulations import digests, rows


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


class TestRun:
    def test_summary_is_printed_as_a_table(self, sim, example):
        example(*SMALL)
        status, printed, error = sim("run", "scenario", "--out", "trace")
        assert (status, error) == (0, "")
        assert printed.startswith("scenario, seed 1\n")
        assert printed.endswith("\nTrace: trace\n")
        summary, told = read_summary(Path("trace")), facts(printed)
        assert summary.deliveries > 0
        assert told["algorithm"] == "snr"
        assert told["brokers"] == "18"
        assert told["subscriptions"] == "30"
        assert told["notifications"] == "60"
        assert told["deliveries"] == f"{summary.deliveries:,}"
        assert told["deliveries lost"] == "0"
        assert told["subscription IMs"] == str(30 * 17)
        assert told["notification IMs"] == f"{summary.notification_ims:,}"
        assert told["longest queue (messages)"] == f"{summary.queue_length_max:,}"

    def test_median_and_99th_percentile_of_the_delays_are_exact(self, sim, example):
        example(*BURST)
        told = facts(sim("run", "scenario", "--out", "trace")[1])
        printed = json.loads(sim("run", "scenario", "--out", "again", "--json")[1])
        intended = {
            (row["publisher"], row["sequence"]): row["intended_ns"]
            for row in rows(Path("trace"), "publications")
        }
        delays = sorted(
            row["delivered_ns"] - intended[row["publisher"], row["sequence"]]
            for row in rows(Path("trace"), "deliveries")
        )
        p50, p99 = (delays[math.ceil(share * len(delays)) - 1] for share in (0.5, 0.99))
        assert (printed["delay_p50_ns"], printed["delay_p99_ns"]) == (p50, p99)
        assert told["delay, median"] == f"{p50 / 1e6:,.3f} ms"
        assert told["delay, 99th percentile"] == f"{p99 / 1e6:,.3f} ms"

    def test_delays_that_nobody_wrote_down_are_not_guessed(self, sim, example):
        example(*SMALL)
        words = ("run", "scenario", "--level", "summary", "--out")
        assert facts(sim(*words, "trace")[1])["delay, median"] == "not recorded"
        assert json.loads(sim(*words, "again", "--json")[1])["delay_p99_ns"] is None

    def test_name_of_a_scenario_is_printed_as_it_is(self, sim, example):
        example(*SMALL)
        edit('name = "scenario"', 'name = "[bold]x[/red]"')
        status, printed, error = sim("run", "scenario", "--out", "trace")
        assert (status, error) == (0, "")
        assert printed.startswith("[bold]x[/red], seed 1\n")

    def test_run_without_notifications_takes_no_time(self, sim, example):
        example(*SMALL, "--notifications", "0")
        status, printed, error = sim("run", "scenario", "--out", "trace")
        assert (status, error) == (0, "")
        told = facts(printed)
        assert (told["notifications"], told["deliveries"]) == ("0", "0")
        assert told["virtual time"].startswith("0.000 s ")

    def test_trace_has_a_usual_folder_named_after_scenario_and_algorithm(self, sim, example):
        example(*SMALL)
        assert sim("run", "scenario")[1].endswith("\nTrace: out/sim/scenario-snr\n")
        assert sim("run", "scenario", "--algorithm", "bid")[0] == 0
        assert {path.name for path in Path("out/sim").iterdir()} == {"scenario-snr", "scenario-bid"}

    @pytest.mark.parametrize(
        ("name", "folder"),
        [
            ("../../../escaped", "escaped-snr"),
            ("/etc", "etc-snr"),
            ("..", "scenario-snr"),
            ("stock, day 1", "stock-day-1-snr"),
            ("süß_v1.2", "süß_v1.2-snr"),
        ],
    )
    def test_name_of_a_scenario_does_not_lead_out_of_the_usual_folder(
        self, sim, example, name: str, folder: str
    ):
        example(*SMALL)
        edit('name = "scenario"', f'name = "{name}"')
        assert sim("run", "scenario")[1].endswith(f"\nTrace: out/sim/{folder}\n")
        assert [path.name for path in Path("out/sim").iterdir()] == [folder]
        assert {path.name for path in Path().iterdir()} == {"out", "scenario"}

    @pytest.mark.parametrize("level", Level)
    def test_level_writes_its_tables_and_the_summary(self, sim, example, level: Level):
        example(*SMALL)
        sim("run", "scenario", "--out", "trace", "--level", level.value)
        wanted = {f"{name}.parquet" for name in level.tables} | {"run.json"}
        assert {path.name for path in Path("trace").iterdir()} == wanted
        assert read_summary(Path("trace")).level == level.value

    def test_counts_are_the_same_at_every_level(self, sim, example):
        example(*BURST, "--algorithm", "dnr")
        told = []
        for level in Level:
            words = ("run", "scenario", "--out", level.value, "--level", level.value, "--json")
            summary = json.loads(sim(*words)[1])
            assert summary.pop("level") == level.value
            delays = summary.pop("delay_p50_ns"), summary.pop("delay_p99_ns")
            assert (None in delays) is (level is Level.SUMMARY)
            told.append(summary)
        assert told[0] == told[1] == told[2]
        assert told[0]["dnr_cases"]
        assert (
            digests(Path("full"))["deliveries.parquet"]
            == digests(Path("deliveries"))["deliveries.parquet"]
        )

    def test_rows_agree_with_the_counts(self, sim, example):
        example(*BURST)
        sim("run", "scenario", "--out", "trace", "--level", "full")
        summary = read_summary(Path("trace"))
        ims = Counter(row["message"] for row in rows(Path("trace"), "ims"))
        assert ims == {
            "subscription": summary.subscription_ims,
            "notification": summary.notification_ims,
        }
        assert len(rows(Path("trace"), "deliveries")) == summary.deliveries
        assert len(rows(Path("trace"), "publications")) == summary.notifications == 460
        assert len(rows(Path("trace"), "subscriptions")) == summary.subscriptions == 30
        assert len(rows(Path("trace"), "stored")) == 30 * 18

    def test_json_is_the_summary_of_the_trace(self, sim, example):
        example(*SMALL)
        status, printed, error = sim("run", "scenario", "--out", "trace", "--json")
        assert (status, error) == (0, "")
        told, summary = json.loads(printed), json.loads(Path("trace/run.json").read_text())
        assert told == {**summary, **{name: told[name] for name in told.keys() - summary.keys()}}
        assert told.keys() - summary.keys() == {"delay_p50_ns", "delay_p99_ns"}
        assert told["state"] == "complete"

    def test_algorithm_may_be_another_than_the_scenarios(self, sim, example):
        scenario = example(*SMALL, "--algorithm", "dnr")
        ims = {}
        for words in ((), ("--algorithm", "snr"), ("--algorithm", "bid")):
            folder = "-".join(("trace", *words[1:]))
            sim("run", "scenario", "--out", folder, *words)
            summary = read_summary(Path(folder))
            assert summary.scenario_digest == scenario.digest
            ims[summary.algorithm] = summary.subscription_ims
        assert ims["dnr"] == ims["snr"] < ims["bid"]

    @pytest.mark.parametrize("algorithm", Algorithm)
    def test_real_brokers_leave_the_same_trace(self, sim, example, algorithm: Algorithm):
        example(*BURST, "--algorithm", algorithm.value)
        sim("run", "scenario", "--out", "cheap", "--level", "full")
        sim("run", "scenario", "--out", "real", "--level", "full", "--real-brokers")
        assert rows(Path("cheap"), "deliveries")
        assert rows(Path("real"), "deliveries") == rows(Path("cheap"), "deliveries")
        assert digests(Path("real")) == digests(Path("cheap"))

    def test_second_run_into_the_same_folder_is_refused(self, sim, example):
        example(*SMALL)
        sim("run", "scenario", "--out", "trace")
        before = digests(Path("trace"))
        sentence = refused(sim, "run", "scenario", "--out", "trace", "--algorithm", "bid")
        assert sentence == "trace is not empty: choose another folder, or remove it"
        assert digests(Path("trace")) == before

    def test_file_in_place_of_the_folder_is_left_alone(self, sim, example):
        example(*SMALL)
        Path("mine").write_text("keep me")
        sentence = refused(sim, "run", "scenario", "--out", "mine")
        assert sentence == "mine is a file: choose another folder, or remove it"
        assert Path("mine").read_text() == "keep me"

    def test_unknown_level_and_algorithm_are_refused(self, sim, example):
        example(*SMALL)
        assert "'all' is not one of" in refused(sim, "run", "scenario", "--level", "all")
        assert "'ospf' is not one of" in refused(sim, "run", "scenario", "--algorithm", "ospf")


class TestBadScenario:
    def test_folder_that_is_not_there(self, sim):
        assert refused(sim, "run", "nowhere") == (
            "there is no nowhere/scenario.toml; make a scenario with octopis sim example"
        )

    @pytest.mark.parametrize("name", FILES)
    def test_folder_without_one_of_the_files(self, sim, example, name: str):
        example(*SMALL)
        (Path("scenario") / name).unlink()
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence.startswith(f"there is no scenario/{name}")
        assert not Path("trace").exists()

    def test_unknown_key_is_refused_with_the_nearest_known_one(self, sim, example):
        example(*SMALL, "--slow", "a,0:b,0:2:0:5")
        edit("factor", "facotr")
        assert refused(sim, "run", "scenario") == (
            "scenario/scenario.toml: unknown key 'slow_links[0].facotr'; did you mean 'factor'?"
        )

    def test_table_that_is_no_parquet(self, sim, example):
        example(*SMALL)
        Path("scenario/publishers.parquet").write_text("publisher,broker,high_rate\n")
        sentence = refused(sim, "run", "scenario")
        assert sentence.startswith("scenario/publishers.parquet is not a Parquet file: ")

    def test_notifications_out_of_order_are_refused_with_their_row(self, sim, example):
        example(*SMALL)
        path = Path("scenario/notifications.parquet")
        rows = pq.read_table(path)
        pq.write_table(pa.concat_tables([rows.slice(1), rows.slice(0, 1)]), path)
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence == f"{path}, row 59: intended_ns must not fall"

    @pytest.mark.parametrize(
        ("column", "values", "message"),
        [
            ("sequence", pa.nulls(60, pa.int64()), ", row 0: only attributes may be empty"),
            ("sequence", pa.array(["x"] * 60), ": sequence must be of type int64, not string"),
            ("intended_ns", pa.array([0.5] * 60), ": intended_ns must be of type int64, not"),
            ("intended_ns", pa.array([2**63 - 1] * 60), ", row 0: intended_ns must be from 0 to"),
            ("attributes", pa.array([1] * 60), ": attributes must be a struct, not int64"),
            ("attributes", pa.array([{"open": b"x"}] * 60), ": the attribute open is of type bin"),
            ("attributes", pa.array([{"open": math.nan}] * 60), ", row 0: open is nan, which"),
        ],
    )
    def test_column_that_makes_no_sense_is_refused_and_no_trace_passes_for_whole(
        self, sim, example, column: str, values: pa.Array, message: str
    ):
        example(*SMALL)
        path = Path("scenario/notifications.parquet")
        table = pq.read_table(path)
        place = table.column_names.index(column)
        pq.write_table(table.set_column(place, column, values), path)
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence.startswith(f"{path}{message}")
        if Path("trace").exists():
            summary = read_summary(Path("trace"))
            assert (summary.state, summary.reason) == ("partial", sentence)

    def test_number_that_comes_twice_is_refused_with_its_row(self, sim, example):
        example(*SMALL, "--publishers", "1")
        path = Path("scenario/notifications.parquet")
        table = pq.read_table(path)
        pq.write_table(table.set_column(1, "sequence", pa.array([0] * 20)), path)
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence == f"{path}, row 1: the sequence of p0000 must rise"

    @pytest.mark.parametrize("name", ["subscriptions", "publishers"])
    def test_client_at_a_broker_that_is_not_there_is_refused_with_its_row(
        self, sim, example, name: str
    ):
        example(*SMALL)
        path = Path(f"scenario/{name}.parquet")
        rows = [row | {"broker": "z,0"} for row in pq.read_table(path).to_pylist()]
        pq.write_table(pa.Table.from_pylist(rows), path)
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence.startswith(f"{path}, row 0: ")
        assert "names 'z'" in sentence

    @pytest.mark.parametrize("name", ["subscriptions", "notifications"])
    def test_table_with_damaged_pages_is_refused(self, sim, example, name: str):
        example("--subscribers", "300", "--publishers", "3", "--notifications", "300")
        path = Path(f"scenario/{name}.parquet")
        content = bytearray(path.read_bytes())
        for place in range(20, len(content) // 2):
            content[place] ^= 0xFF
        path.write_bytes(content)
        assert refused(sim, "run", "scenario", "--out", "trace").startswith(str(path))
