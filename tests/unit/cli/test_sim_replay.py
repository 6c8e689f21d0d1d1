import json
from pathlib import Path

import pytest

from octopis.scenario.folder import read_scenario
from octopis.simulator.notifying import StaticNotifying
from octopis.simulator.real_brokers import RealBrokers
from octopis.trace import Level, read_summary
from support.sim_command import BURST, SMALL, edit, refused
from support.simulations import rows

MS = 1_000_000
SERVE = StaticNotifying.serve


def deliver_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: brokers deliver to their local clients twice."""

    def twice(self, station, output, copy, now) -> None:
        flight = copy.subject
        if flight.targets & station.bit:
            flight.audience.reach(flight.row, station.index, now, copy.hops)
        SERVE(self, station, output, copy, now)

    monkeypatch.setattr(StaticNotifying, "serve", twice)


def skip_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: brokers next to the publisher's send nothing on."""

    def skipping(self, station, output, copy, now) -> None:
        if copy.hops == 1:
            copy.subject.targets &= station.bit
        SERVE(self, station, output, copy, now)

    monkeypatch.setattr(StaticNotifying, "serve", skipping)


class TestViolation:
    @pytest.fixture
    def violated(self, sim, example, monkeypatch: pytest.MonkeyPatch) -> str:
        """Make a run that violates a law; return what it wrote to standard error."""
        example(*SMALL, "--seed", "6")
        deliver_twice(monkeypatch)
        status, printed, error = sim("run", "scenario", "--out", "trace", "--level", "deliveries")
        assert (status, printed) == (1, "")
        return error

    def test_violation_is_one_sentence_with_seed_time_and_broker(self, violated: str):
        hint, sentence = violated.splitlines()
        assert hint == "octopis: to see the moments before, octopis sim replay trace"
        evidence = json.loads(Path("trace/violation.json").read_text())
        assert sentence == (
            "octopis: law violated: no duplicate: delivered twice "
            f"(notification {evidence['sequence']} of {evidence['publisher']}), "
            f"at broker {evidence['broker']}, {evidence['time_ns'] / 1e9:.9f} s of virtual time, "
            "seed 6"
        )

    @pytest.mark.usefixtures("violated")
    def test_evidence_says_what_it_takes_to_see_it_again(self):
        evidence = json.loads(Path("trace/violation.json").read_text())
        scenario = read_scenario(Path("scenario"))
        wanted = {
            "scenario": str(Path("scenario").resolve()),
            "scenario_digest": scenario.digest,
            "algorithm": "snr",
            "real_brokers": False,
            "law": "no duplicate",
            "detail": "delivered twice",
            "seed": 6,
        }
        assert {name: evidence[name] for name in wanted} == wanted
        named = (evidence["publisher"], evidence["sequence"], evidence["broker"])
        assert named in {
            (row["publisher"], row["sequence"], row["broker"])
            for row in rows(Path("trace"), "deliveries")
            if row["delivered_ns"] == evidence["time_ns"]
        }

    def test_trace_of_a_violated_run_is_valid_and_marked(self, violated: str):
        summary = read_summary(Path("trace"))
        assert summary.state == "violated"
        assert violated.endswith(f"octopis: {summary.reason}\n")
        assert len(rows(Path("trace"), "deliveries")) == summary.deliveries
        assert len(rows(Path("trace"), "links")) == 66

    @pytest.mark.usefixtures("violated")
    def test_delivery_that_came_twice_makes_up_for_none_that_was_lost(self):
        assert read_summary(Path("trace")).deliveries_lost == 0

    def test_delivery_that_is_missing_is_a_violation_too(
        self, sim, example, monkeypatch: pytest.MonkeyPatch
    ):
        example(*SMALL)
        skip_links(monkeypatch)
        status, _, error = sim("run", "scenario", "--out", "trace")
        assert status == 1
        assert "law violated: nothing lost: a subscriber got nothing" in error
        assert json.loads(Path("trace/violation.json").read_text())["law"] == "nothing lost"

    def test_real_brokers_do_without_the_cheap_forms(self, sim, example, monkeypatch):
        example(*SMALL)
        deliver_twice(monkeypatch)
        assert sim("run", "scenario", "--out", "cheap")[0] == 1
        assert sim("run", "scenario", "--out", "real", "--real-brokers")[0] == 0

    def test_violation_is_found_at_every_level(self, sim, example, monkeypatch):
        example(*SMALL)
        deliver_twice(monkeypatch)
        sentences = set()
        for level in Level:
            status, _, error = sim("run", "scenario", "--out", level.value, "--level", level.value)
            assert status == 1
            sentences.add(error.splitlines()[-1])
        assert len(sentences) == 1


class TestReplay:
    @pytest.fixture(autouse=True)
    def _violated(self, sim, example, monkeypatch: pytest.MonkeyPatch):
        example(*BURST)
        sim("run", "scenario", "--out", "healthy")
        deliver_twice(monkeypatch)
        assert sim("run", "scenario", "--out", "trace")[0] == 1

    def evidence(self) -> dict:
        return json.loads(Path("trace/violation.json").read_text())

    def test_moments_before_are_printed(self, sim):
        status, printed, error = sim("replay", "trace")
        assert (status, error) == (0, "")
        lines = printed.splitlines()
        assert lines[0] == read_summary(Path("trace")).reason
        assert lines[1] == "The moments before"
        assert lines[2].split() == (
            ["s", "from", "to", "link", "message", "about", "queue", "carries", "reason", "fate"]
        )
        assert lines[3:]
        evidence = self.evidence()
        about = f"{evidence['publisher']} {evidence['sequence']}"
        assert any(evidence["broker"] in line and about in line for line in lines[3:])

    def test_json_tells_every_message_at_the_broker_and_of_the_notification(self, sim):
        told = json.loads(sim("replay", "trace", "--json", "--last-ms", "3300")[1])
        assert told["violation"] == read_summary(Path("trace")).reason
        sim("run", "scenario", "--out", "full", "--level", "full")
        evidence = self.evidence()
        its, near, before = [], [], []
        for row in sorted(rows(Path("full"), "ims"), key=lambda row: row["enqueued_ns"]):
            ago_ns = evidence["time_ns"] - row["enqueued_ns"]
            if (row["publisher"], row["sequence"]) == (evidence["publisher"], evidence["sequence"]):
                its.append(row)
            elif evidence["broker"] in (row["source"], row["target"]) and ago_ns >= 0:
                (near if ago_ns <= 3300 * MS else before).append(row)
        assert its
        assert near
        assert before
        assert sorted(told["messages"], key=str) == sorted(its + near, key=str)
        times = [each["enqueued_ns"] for each in told["messages"]]
        assert times == sorted(times)

    @pytest.mark.parametrize("ms", ["nan", "inf", "-1", "1e10"])
    def test_look_back_that_makes_no_sense_is_refused(self, sim, ms: str):
        sentence = refused(sim, "replay", "trace", "--last-ms", ms)
        assert sentence == f"--last-ms must be from 0 to 1e9, not {float(ms)}"

    def test_longer_look_back_shows_more(self, sim):
        counts = [
            len(json.loads(sim("replay", "trace", "--json", "--last-ms", ms)[1])["messages"])
            for ms in ("0", "10", "10000000")
        ]
        assert counts[0] <= counts[1] < counts[2]

    def test_replay_leaves_nothing_behind(self, sim):
        before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
        sim("replay", "trace")
        assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before

    def test_algorithm_of_the_run_is_the_replays(self, sim):
        edit('algorithm = "snr"', 'algorithm = "bid"')
        assert sim("run", "scenario", "--out", "forced", "--algorithm", "snr")[0] == 1
        assert sim("replay", "forced")[0] == 0

    def test_replay_lets_real_brokers_decide_where_the_run_did(
        self, sim, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(StaticNotifying, "serve", SERVE)
        deliver = RealBrokers._deliver

        def twice(self, *facts) -> None:
            deliver(self, *facts)
            deliver(self, *facts)

        monkeypatch.setattr(RealBrokers, "_deliver", twice)
        assert sim("run", "scenario", "--out", "real", "--real-brokers")[0] == 1
        assert json.loads(Path("real/violation.json").read_text())["real_brokers"] is True
        assert sim("replay", "real")[0] == 0

    def test_run_that_violated_no_law_cannot_be_replayed(self, sim):
        assert refused(sim, "replay", "healthy") == (
            "there is no healthy/violation.json: only a run that violated a law can be replayed"
        )
        assert "only a run that violated a law" in refused(sim, "replay", "nowhere")

    def test_scenario_that_was_changed_is_refused(self, sim):
        edit("[routing]", "# a change\n[routing]")
        folder = Path("scenario").resolve()
        sentence = refused(sim, "replay", "trace")
        assert sentence == f"{folder} is not the scenario that was run: it differs"

    def test_scenario_may_have_moved(self, sim):
        Path("scenario").rename("elsewhere")
        folder = Path("scenario").resolve()
        sentence = refused(sim, "replay", "trace")
        assert sentence == f"the scenario is no longer in {folder}: say --scenario PATH"
        status, printed, _ = sim("replay", "trace", "--scenario", "elsewhere")
        assert (status, printed.splitlines()[1]) == (0, "The moments before")

    def test_fault_that_was_mended_is_told(self, sim, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(StaticNotifying, "serve", SERVE)
        sentence = refused(sim, "replay", "trace")
        assert sentence == "this version runs the scenario without a violation"

    def test_evidence_that_is_none_is_refused(self, sim):
        Path("trace/violation.json").write_text('{"law": "no loop"}')
        sentence = refused(sim, "replay", "trace")
        assert sentence.startswith("trace/violation.json is not a violation: ")
