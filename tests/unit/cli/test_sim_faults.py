import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.core.routing import Algorithm
from octopis.scenario.folder import read_scenario
from octopis.trace import Level, read_summary
from support.sim_command import BURST, SMALL, assert_consistent, edit, facts, queue_of
from support.simulations import digests, made_deliveries, rows, wanted_deliveries

BROKERS = pytest.mark.parametrize("brokers", [(), ("--real-brokers",)], ids=["cheap", "real"])


def feed_ends_ns(trace: Path) -> dict[str, int]:
    """Return for every subscription when it got the high-rate publisher's last notification."""
    feed = [row for row in rows(trace, "deliveries") if row["publisher"] == "hrp"]
    return {row["subscription"]: row["delivered_ns"] for row in feed}


class TestFaults:
    @pytest.fixture
    def way_out(self, example) -> tuple[str, str]:
        """Make a scenario with a high-rate publisher; return a link that its notifications take."""
        scenario = example(*BURST)
        (host,) = [each.broker for each in scenario.publishers if each.high_rate]
        return host.short, scenario.topology.scot.secondary_neighbours(host)[0].short

    def test_slow_link_delays_and_loses_nothing(self, sim, way_out: tuple[str, str]):
        link = ":".join(way_out)
        sim("example", "--out", "slowed", *BURST, "--slow", f"{link}:50:5000:6000")
        sim("run", "scenario", "--out", "before")
        sim("run", "slowed", "--out", "after")
        before, after = read_summary(Path("before")), read_summary(Path("after"))
        assert (after.deliveries, after.deliveries_lost) == (before.deliveries, 0)
        assert (
            queue_of(Path("after"), *way_out)["waited_ns"]
            > 5 * queue_of(Path("before"), *way_out)["waited_ns"]
        )

        fast, slow = feed_ends_ns(Path("before")), feed_ends_ns(Path("after"))
        later = {name for name in fast if slow[name] > fast[name]}
        assert later
        assert later < set(fast), "those who are not behind the link do not wait"

    def test_channels_send_again_what_is_lost_and_say_how_much(self, sim):
        words = (*BURST, "--algorithm", "tnr", "--queue-capacity", "30")
        sim("example", "--out", "routed", *words)
        sim("example", "--out", "channelled", *words, "--level", "memory")
        _, routed, _ = sim("run", "routed", "--out", "without")
        status, printed, _ = sim("run", "channelled", "--out", "with")
        without, summary = read_summary(Path("without")), read_summary(Path("with"))
        assert without.deliveries_lost > 0
        assert "sent again" not in facts(routed)
        assert (status, summary.deliveries_lost) == (0, 0)
        assert summary.deliveries == without.deliveries + without.deliveries_lost
        assert facts(printed)["sent again"] == f"{summary.sent_again:,}" != "0"
        assert facts(printed)["... and were there before"] == f"{summary.duplicates:,}"
        assert "given up" not in facts(printed)

    def test_dynamic_routing_goes_around_a_slow_link(self, sim, way_out: tuple[str, str]):
        link = ":".join(way_out)
        sim("example", "--out", "slowed", *BURST, "--slow", f"{link}:50:5000:6000")
        sim("run", "slowed", "--out", "snr")
        _, printed, _ = sim("run", "slowed", "--out", "dnr", "--algorithm", "dnr")
        snr, dnr = read_summary(Path("snr")), read_summary(Path("dnr"))
        assert (dnr.deliveries, dnr.deliveries_lost) == (snr.deliveries, 0)
        assert (
            queue_of(Path("dnr"), *way_out)["waited_ns"]
            < queue_of(Path("snr"), *way_out)["waited_ns"]
        )
        cases = ", ".join(f"{name}: {count:,}" for name, count in dnr.dnr_cases.items())
        assert facts(printed)["cases of dynamic routing"] == cases

    @pytest.mark.parametrize("level", Level)
    def test_cut_link_loses_deliveries_and_says_so(
        self, sim, way_out: tuple[str, str], level: Level
    ):
        link = ":".join(way_out)
        sim("example", "--out", "cut", *BURST, "--cut", f"{link}:5050:5150")
        sim("run", "scenario", "--out", "before")
        words = ("run", "cut", "--out", "after", "--level", level.value)
        status, printed, error = sim(*words)
        assert (status, error) == (0, "")
        before, after = read_summary(Path("before")), read_summary(Path("after"))
        assert after.state == "complete"
        assert after.notifications == before.notifications
        assert 0 < after.deliveries_lost < before.deliveries
        assert after.deliveries + after.deliveries_lost == before.deliveries
        told = facts(printed)
        assert told["deliveries lost"] == f"{after.deliveries_lost:,}"
        assert told["IMs of links that came back"] == str(after.sync_ims) != "0"

    def test_link_that_is_cut_after_the_last_message_loses_nothing(self, sim, example):
        example(*SMALL, "--cut", "a,0:b,0:600000:600001")
        sim("run", "scenario", "--out", "trace")
        summary = read_summary(Path("trace"))
        assert (summary.state, summary.deliveries_lost) == ("complete", 0)


class TestQueueBounds:
    @pytest.fixture(params=["drop_newest", "drop_oldest"])
    def policy(self, example, request: pytest.FixtureRequest) -> str:
        """Make a scenario whose high-rate publisher fills queues; return what happens then."""
        example(*BURST, "--queue-capacity", "20")
        policy: str = request.param
        if policy != "drop_newest":
            edit('"drop_newest"', f'"{policy}"')
        return policy

    @BROKERS
    @pytest.mark.parametrize("algorithm", Algorithm)
    def test_bound_that_is_reached_is_reported_with_what_the_policy_did(
        self, sim, policy: str, algorithm: Algorithm, brokers: tuple[str, ...]
    ):
        words = ("run", "scenario", "--out", "trace", "--algorithm", algorithm.value, *brokers)
        status, printed, error = sim(*words)
        assert (status, error) == (0, "")
        summary = read_summary(Path("trace"))
        assert summary.queue_bounds
        for bound in summary.queue_bounds:
            assert bound.policy == policy
            assert (
                bound.dropped == queue_of(Path("trace"), bound.source, bound.target)["dropped"] > 0
            )
            assert summary.begin_ns < bound.first_ns < summary.end_ns
            assert (
                f"The queue from {bound.source} to {bound.target} reached its bound at "
                f"{bound.first_ns / 1e9:,.3f} s of virtual time; messages lost by {policy}: "
                f"{bound.dropped:,}.\n"
            ) in printed
        assert printed.count("reached its bound") == len(summary.queue_bounds)
        dropping = [row for row in rows(Path("trace"), "links") if row["dropped"]]
        assert len(dropping) == len(summary.queue_bounds)
        assert facts(printed)["deliveries lost"] == f"{summary.deliveries_lost:,}" != "0"
        self.check_that_losses_are_counted_exactly_and_break_no_law()

    def check_that_losses_are_counted_exactly_and_break_no_law(self) -> None:
        summary = read_summary(Path("trace"))
        assert (summary.state, summary.notifications) == ("complete", 460)
        assert not Path("trace/violation.json").exists()
        scenario = read_scenario(Path("scenario"))
        wanted, made = wanted_deliveries(scenario), made_deliveries(Path("trace"))
        assert set(made) < set(wanted)
        assert summary.deliveries == len(made) == len(set(made))
        assert summary.deliveries_lost == len(wanted) - len(made) > 0
        assert_consistent(Path("trace"), scenario, summary)

    @pytest.mark.parametrize("algorithm", Algorithm)
    def test_real_brokers_lose_the_same(self, sim, policy: str, algorithm: Algorithm):
        assert policy
        words = ("run", "scenario", "--algorithm", algorithm.value, "--level", "full", "--out")
        assert sim(*words, "cheap")[0] == 0
        assert sim(*words, "real", "--real-brokers")[0] == 0
        assert digests(Path("real")) == digests(Path("cheap"))

    def test_lost_deliveries_are_the_same_at_every_level(self, sim, policy: str):
        told = []
        for level in Level:
            words = ("run", "scenario", "--out", level.value, "--level", level.value, "--json")
            found = json.loads(sim(*words)[1]) | {"level": ""}
            delays = found.pop("delay_p50_ns"), found.pop("delay_p99_ns")
            # They are read from the deliveries, where these are written down.
            assert (delays == (None, None)) is (level is Level.SUMMARY)
            told.append(found)
        assert told[0] == told[1] == told[2]
        assert told[0]["deliveries_lost"] > 0
        keys = {"source", "target", "first_ns", "policy", "dropped"}
        assert all(bound.keys() == keys for bound in told[0]["queue_bounds"])
        assert {bound["policy"] for bound in told[0]["queue_bounds"]} == {policy}
        assert sum(bound["dropped"] for bound in told[0]["queue_bounds"]) > 0

    def test_queue_with_room_reports_nothing(self, sim, example):
        example(*BURST)
        _, printed, _ = sim("run", "scenario", "--out", "trace")
        assert "reached its bound" not in printed
        assert read_summary(Path("trace")).queue_bounds == []

    def test_policy_may_be_to_stop_and_leaves_a_partial_trace(self, sim, example):
        example(*BURST, "--queue-capacity", "20")
        edit('"drop_newest"', '"stop"')
        status, printed, error = sim("run", "scenario", "--out", "trace")
        assert (status, printed) == (1, "")
        assert error.startswith("octopis: the output queue from B(")
        assert "reached its bound of 20 messages at " in error
        assert error.endswith('s of virtual time, and queues.policy is "stop"\n')
        summary = read_summary(Path("trace"))
        assert summary.state == "partial"
        assert f"octopis: {summary.reason}\n" == error
        assert_consistent(Path("trace"), read_scenario(Path("scenario")), summary)

    def test_subscription_that_finds_no_room_ends_the_run_with_what_to_do(self, sim, example):
        example(*SMALL, "--queue-capacity", "1")
        path = Path("scenario/subscriptions.parquet")
        rows = [row | {"subscribe_ns": 0} for row in pq.read_table(path).to_pylist()]
        pq.write_table(pa.Table.from_pylist(rows), path)
        status, printed, error = sim("run", "scenario", "--out", "trace")
        assert (status, printed) == (1, "")
        assert "a subscription was dropped: raise queues.capacity_messages" in error
        assert read_summary(Path("trace")).state == "partial"


class TestDeadBrokers:
    def test_dead_brokers_are_named_or_drawn_by_the_scenarios_seed(self, sim, example):
        scenario = example(*SMALL)
        _, printed, _ = sim(
            "run", "scenario", "--out", "tnr", "--algorithm", "tnr", "--dead", "b,2"
        )
        assert facts(printed)["dead brokers"] == "b,2"
        assert facts(printed)["deliveries lost"] == "0"
        sim("run", "scenario", "--out", "drawn", "--dead-share", "0.2")
        drawn = read_summary(Path("drawn")).dead_brokers
        brokers = len(scenario.topology.scot.brokers)
        assert isinstance(drawn, list)
        assert len(drawn) == round(0.2 * brokers)
        sim("run", "scenario", "--out", "again", "--dead-share", "0.2")
        assert digests(Path("drawn")) == digests(Path("again"))

    def test_dead_brokers_stand_in_the_scenario(self, sim):
        sim("example", "--out", "hurt", *SMALL, "--dead", "b,2", "--dead", "a,1")
        assert 'broker = "b,2"' in Path("hurt/scenario.toml").read_text()
        sim("run", "hurt", "--out", "trace")
        assert read_summary(Path("trace")).dead_brokers == ["a,1", "b,2"]

    @pytest.mark.parametrize("wrong", [("--dead", "z,9"), ("--dead-share", "1"), ("--dead", "b2")])
    def test_dead_brokers_that_are_not_there_are_refused(self, sim, example, wrong):
        example(*SMALL)
        status, _, error = sim("run", "scenario", "--out", "trace", *wrong)
        assert status == 2
        assert "Traceback" not in error
        assert not Path("trace").exists()
