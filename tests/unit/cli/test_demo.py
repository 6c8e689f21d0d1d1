import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from octopis.cli import demo
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.demo.comparison import Compared
from octopis.demo.deliveries import RoundVerdict
from octopis.demo.fault import cast
from octopis.demo.fault.cast import FaultPlan, cast_of
from octopis.demo.fault.outcome import FaultOutcome
from octopis.demo.fault.record import Gaps, Received
from octopis.demo.pace import Pace
from octopis.demo.run import ROUNDS, Demonstrated
from octopis.demo.stage import PlainStage
from octopis.demo.workload import FULL, SMALL, Feed, SlowedLink
from octopis.scenario.plan import ScenarioPlan

HOST = BrokerId("b", 2)
FEED = Feed(HOST, {"feed": "hrp"}, [], 2.0, 6.0, 1_601, 137.0)
PACE = Pace(1.0, 20.0, 0.3)
LINK = SlowedLink(HOST, BrokerId("b", 0), 21_920.0, 0)


CAST = cast_of(cast.SMALL.topology)


def killed(twice: int) -> FaultOutcome:
    received = [
        Received(
            each,
            is_behind=each in CAST.behind,
            delivered=600,
            lost_ns=[],
            twice=twice,
            gaps=Gaps(10.0, 30.0, 50.0),
            has_last=True,
        )
        for each in CAST.subscribers
    ]
    return FaultOutcome(CAST, 100, 600, -1.0, 1.0, 1.3, received, 98, 197, [10] * 60, [10] * 60)


def compared(algorithm: Algorithm, lost: int) -> Compared:
    verdict = RoundVerdict(100, 100 - lost, lost, 0, 0, 0, 1.5, 6_480.0)
    return Compared(algorithm, verdict, 340, 1_581, 999, LINK.short, 300, {}, False, PACE)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Stand in for the demonstration itself; SNR loses as many as the seed says.

    With seed 99 it loses nothing, but in the last scene everybody gets something twice.
    """
    calls: list[tuple[object, ...]] = []

    def run_demo(  # noqa: PLR0917 - as the real one
        plan: ScenarioPlan,
        fault_plan: FaultPlan,
        out: Path,
        stage: PlainStage,
        settings: dict[str, str],
        gateway_port: int | None,
    ) -> Demonstrated:
        port = [] if gateway_port == 0 else [gateway_port]
        calls.append((plan, fault_plan, out, *([settings] if settings else []), *port))
        stage.say("on with it")
        lost = plan.seed if plan.seed != 99 else 0
        rows = [compared(each, lost if each is Algorithm.SNR else 0) for each in ROUNDS]
        return Demonstrated(plan.seed, FEED, LINK, rows, killed(twice=plan.seed == 99))

    monkeypatch.setattr(demo, "run_demo", run_demo)
    return calls


def test_demo_shows_the_comparison_and_what_to_do_next(octopis, asked):
    status, printed, error = octopis("demo", "--seed", "0")
    assert (status, error) == (0, "")
    assert asked == [(replace(FULL, seed=0), cast.FULL, Path("out/demo"))]
    lines = printed.splitlines()
    assert lines[0] == "on with it"
    table = {line[:36].strip(): line[36:].split() for line in lines if line.startswith(" ")}
    assert table["deliveries due"] == ["100", "100", "100", "100"]
    assert table["lost"] == ["0", "0", "0", "0"]
    assert "All 100 deliveries that the ground truth asks for came" in printed
    assert "B(b, 0) was killed while 100 notifications a second went" in printed
    assert "Nothing stopped" in printed
    assert "The report, with pictures: out/demo/report.html" in printed
    assert "octopis overlay up --config out/demo/overlay.toml" in printed


@pytest.mark.usefixtures("asked")
def test_busy_machine_is_said_before_the_report_is(octopis, monkeypatch):
    monkeypatch.setitem(globals(), "PACE", Pace(900.0, 2_400.0, 0.3))
    status, printed, _ = octopis("demo", "--seed", "0")
    assert status == 0
    assert "This machine was too busy for a comparison: under BID publishers were late" in printed
    status, printed, _ = octopis("demo", "--seed", "0", "--json")
    found = json.loads(printed)
    assert found["conclusive"] is False
    assert found["cautions"][0].startswith("This machine was too busy")


def test_lost_delivery_is_shown_and_is_an_error(octopis, asked):
    status, printed, error = octopis("demo", "--seed", "3", "--size", "small", "--out", "here")
    assert asked == [(replace(SMALL, seed=3), cast.SMALL, Path("here"))]
    assert status == 1
    assert "The report, with pictures: here/report.html" in printed
    assert "All 100" not in printed
    assert error == "octopis: the deliveries of the round under SNR are wrong: 3 lost\n"


@pytest.mark.usefixtures("asked")
def test_delivery_that_came_twice_after_the_kill_is_shown_and_is_an_error(octopis):
    status, printed, error = octopis("demo", "--seed", "99")
    assert status == 1
    assert "The report, with pictures" in printed
    assert "Nothing stopped" not in printed
    assert error == (
        "octopis: the deliveries of the scene with a killed broker are wrong: 2 delivered twice\n"
    )


def test_json_stands_alone_on_standard_output(octopis, asked):
    status, printed, error = octopis("demo", "--seed", "0", "--json")
    assert status == 0
    assert len(asked) == 1
    shown = json.loads(printed)
    assert [each["algorithm"] for each in shown["rounds"]] == ["bid", "snr", "dnr", "tnr"]
    assert shown["fault"]["killed"] == "b,0"
    assert shown["fault"]["longest_gap_behind_ms"]["while_dead"] == 30.0
    assert shown["slowed_link"]["source"] == "b,2"
    assert shown["report"] == "out/demo/report.html"
    assert error == "on with it\n"


def test_help_says_what_happens_and_how_long_it_takes(octopis):
    status, printed, _ = octopis("demo", "--help")
    assert status == 0
    assert "about a minute and a half" in " ".join(printed.split())


def test_settings_of_spark_are_passed_on(octopis, asked):
    assert octopis("demo", "--seed", "0", "--conf", "spark.driver.memory=2g")[0] == 0
    assert asked == [
        (replace(FULL, seed=0), cast.FULL, Path("out/demo"), {"spark.driver.memory": "2g"})
    ]


def test_dashboard_has_the_port_that_is_asked_for_or_is_not_there(octopis, asked):
    assert octopis("demo", "--seed", "0", "--gateway-port", "7490")[0] == 0
    assert octopis("demo", "--seed", "0", "--no-gateway")[0] == 0
    assert [each[3:] for each in asked] == [(7490,), (None,)]


def test_without_the_extra_of_the_gateway_one_line_says_so_and_all_else_goes_on(
    octopis, asked, monkeypatch
):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    status, printed, error = octopis("demo", "--seed", "0")
    assert (status, error) == (0, "")
    assert printed.splitlines()[:2] == [
        "No dashboard: uvicorn is missing; pip install 'octopis[gateway]'",
        "on with it",
    ]
    assert asked[0][3:] == (None,)
