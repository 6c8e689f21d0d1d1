import json
import math
from collections import Counter
from pathlib import Path

import pytest

from octopis.core.routing import Algorithm
from octopis.trace import Level, read_summary
from support.sim_command import BURST, SMALL, edit, facts, refused
from support.simulations import digests, rows


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
