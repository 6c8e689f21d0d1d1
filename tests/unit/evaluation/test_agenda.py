"""How far an evaluation is: by what lies on the disk, and by how long it took so far."""

from collections import Counter
from pathlib import Path
from threading import Event

import pytest

from octopis.core.routing import Algorithm
from octopis.evaluation import agenda as module
from octopis.evaluation.agenda import (
    Agenda,
    Item,
    Progress,
    deliveries,
    items,
    metrics_s,
    run_name,
    run_s,
)
from octopis.evaluation.experiments import EvaluationSize, Experiment, Point, points
from octopis.evaluation.folders import Folders
from octopis.evaluation.sensitivity import bases
from octopis.evaluation.sensitivity import points as varied_points
from support.measures import PAPER


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def work(folder: Path) -> list[Item]:
    """30 s of scenarios, 70 s of runs."""
    return [
        Item("scenarios", folder / "s1", 10),
        Item("scenarios", folder / "s2", 20),
        Item("runs", folder / "r", 70),
    ]


@pytest.mark.usefixtures("clock")
def test_nothing_is_done_at_first_and_all_that_is_expected_is_left(tmp_path: Path):
    found = Agenda(work(tmp_path)).progress("scenarios")
    assert found == Progress("scenarios", 0, 2, 0.0, 0.0, pytest.approx(100))


def test_what_is_on_the_disk_is_done(tmp_path: Path, clock: Clock):
    agenda = Agenda(work(tmp_path))
    (tmp_path / "s2").touch()
    clock.now += 20
    found = agenda.progress("scenarios")
    assert (found.done, found.total) == (1, 2)
    assert found.share == pytest.approx(0.2)
    assert found.elapsed_s == 20
    assert found.left_s == pytest.approx(80), "it went as expected"
    assert agenda.progress("runs").done == 0


def test_time_left_falls_as_things_get_done(tmp_path: Path, clock: Clock):
    agenda = Agenda(work(tmp_path))
    left = [agenda.progress("runs").left_s]
    for name, took_s in (("s1", 10), ("s2", 20), ("r", 70)):
        (tmp_path / name).touch()
        clock.now += took_s
        left.append(agenda.progress("runs").left_s)
    assert left == pytest.approx([100, 90, 70, 0])


def test_slow_work_lets_the_rest_take_longer(tmp_path: Path, clock: Clock):
    """What took 3 times as long as expected; 60 s count as expected at the beginning."""
    agenda = Agenda(work(tmp_path))
    for name in ("s1", "s2"):
        (tmp_path / name).touch()
    clock.now += 90
    assert agenda.progress("runs").left_s == pytest.approx(70 * (90 + 60) / (30 + 60))


def test_resumed_agenda_counts_what_was_done_before_but_not_its_time(tmp_path: Path, clock: Clock):
    (tmp_path / "s1").touch()
    (tmp_path / "s2").touch()
    agenda = Agenda(work(tmp_path))
    begun = agenda.progress("scenarios")
    assert (begun.done, begun.share, begun.left_s) == (2, pytest.approx(0.3), pytest.approx(70))
    clock.now += 7
    # Work of 70 s, of which nothing is done after 7 s.
    assert agenda.progress("runs").left_s == pytest.approx(70 * 67 / 60)


def test_result_that_somebody_removes_leaves_time_and_never_less_than_none(
    tmp_path: Path, clock: Clock
):
    for name in ("s1", "s2", "r"):
        (tmp_path / name).touch()
    agenda = Agenda(work(tmp_path))
    assert agenda.progress("runs").left_s == 0
    for name in ("s1", "s2", "r"):
        (tmp_path / name).unlink()
        clock.now += 1
        assert 0 < agenda.progress("runs").left_s < 1000


def test_stage_tells_at_its_begin_and_its_end(tmp_path: Path):
    told: list[Progress] = []
    with Agenda(work(tmp_path)).stage("scenarios", told.append):
        assert [(each.stage, each.done) for each in told] == [("scenarios", 0)]
        (tmp_path / "s1").touch()
    assert told[-1].done == 1


def test_stage_tells_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_EVERY_S", 0.001)
    told: list[Progress] = []
    seen = Event()

    def tell(progress: Progress) -> None:
        told.append(progress)
        if progress.done:
            seen.set()

    with Agenda(work(tmp_path)).stage("scenarios", tell):
        (tmp_path / "s1").touch()
        assert seen.wait(10), "nobody looked"


def test_stage_that_fails_stops_telling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_EVERY_S", 0.001)
    told: list[Progress] = []

    def fail() -> None:
        with Agenda(work(tmp_path)).stage("scenarios", told.append):
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        fail()
    count = len(told)
    Event().wait(0.05)
    assert len(told) == count


def everything(folder: Path, size: EvaluationSize) -> list[Item]:
    groups: dict[str, list[Point]] = {}
    for point in points(size, 1, PAPER):
        groups.setdefault(point.experiment, []).append(point)
    built = [point.plan for group in groups.values() for point in group]
    built += bases(size, PAPER)
    groups["sensitivity"] = varied_points(size, PAPER)
    plans = [*built, *(point.plan for point in groups["sensitivity"])]
    return items(Folders(folder), plans, built, groups)


def test_agenda_holds_every_scenario_truth_run_and_group(tmp_path: Path):
    found = everything(tmp_path, EvaluationSize.QUICK)
    counts = Counter(item.stage for item in found)
    # 11 scenarios and 2 bases are built, 2 x 7 varied; 10 run under four algorithms, 1 under three.
    assert counts == {
        "quotes": 1,
        "scenarios": 27,
        "ground truth": 13,
        "simulations": 40 + 3 + 56,
        "metrics": 5,
        "report": 1,
    }
    assert len({item.result for item in found}) == len(found)
    assert all(item.expected_s > 0 for item in found)


def test_full_size_is_expected_to_take_most_of_an_hour_and_quick_minutes(tmp_path: Path):
    full = sum(item.expected_s for item in everything(tmp_path, EvaluationSize.FULL))
    quick = sum(item.expected_s for item in everything(tmp_path, EvaluationSize.QUICK))
    assert 30 * 60 < full < 120 * 60
    assert 60 < quick < 10 * 60


def test_larger_runs_are_expected_to_take_longer_and_bid_longest():
    first, *_, last = [
        each
        for each in points(EvaluationSize.FULL, 1, PAPER)
        if each.experiment is Experiment.SUBSCRIBERS
    ]
    times = [run_s(first.plan, algorithm) for algorithm in (Algorithm.SNR, Algorithm.BID)]
    assert times == sorted(times)
    assert run_s(last.plan, Algorithm.SNR) > run_s(first.plan, Algorithm.SNR)


def test_deliveries_are_about_what_the_selectivity_lets_expect():
    """100 publishers of 1,000 notifications, each wanted by 2% of 500 subscribers."""
    first = points(EvaluationSize.FULL, 1, PAPER)[0]
    assert deliveries(first.plan) == pytest.approx(100 * 1000 * 0.02 * 500)
    assert metrics_s([first]) == pytest.approx(6 + 4e6 * 1.0e-6)


def test_run_is_named_by_its_scenario_and_algorithm():
    assert (
        run_name(points(EvaluationSize.FULL, 2, PAPER)[0], Algorithm.BID)
        == "subscribers-500-seed2-bid"
    )
