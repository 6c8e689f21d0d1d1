"""What Spark left on the disk, read and put together run by run."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.core.routing import Algorithm
from octopis.evaluation.experiments import EvaluationSize, Experiment, Point, points
from octopis.evaluation.folders import Folders
from octopis.evaluation.measures import Measures, Series, read_measures
from support.measures import PAPER, measures

SECOND_NS = 1_000_000_000
BID, SNR, DNR, TNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR, Algorithm.TNR
TRUTH = {"rows": 3, "hash_xor": -7, "hash_sum": 11}


class TestSeries:
    def test_overlay_that_is_never_late_is_stable_from_the_start(self):
        assert Series([1.0, 2.0], [0.2, 1.0]).stabilised_s == 0

    def test_overlay_is_stable_after_its_last_late_delivery(self):
        assert Series([1.0, 2.0, 3.0, 4.0], [5.0, 0.1, 1.5, 0.1]).stabilised_s == 3.0

    def test_overlay_that_is_late_at_the_very_end_is_not_stable(self):
        assert Series([1.0, 2.0, 3.0], [0.1, 0.1, 1.5]).stabilised_s is None

    def test_run_without_deliveries_is_never_late(self):
        assert Series([], []).stabilised_s == 0


class TestSelection:
    def test_runs_are_found_by_what_they_are_in_the_order_of_what_varies(self):
        found = measures(2).of(Experiment.SUBSCRIBERS, DNR)
        assert [(run.point.x, run.point.seed) for run in found] == [
            (x, seed) for x in (125, 250, 500, 1000) for seed in (1, 2)
        ]
        assert len(measures(2).of(Experiment.BURST, seed=2, x=80_000)) == 4
        assert [run.algorithm for run in measures().of(Experiment.SEVERAL)] == [DNR, SNR, TNR]
        assert len(measures().of(Experiment.SENSITIVITY, x=0, variation="tau 20")) == 4

    def test_seeds_are_those_of_the_runs(self):
        assert measures(3).seeds == [1, 2, 3]

    def test_mean_is_over_the_runs_given(self):
        def growing(point, _algorithm):
            return {"notification_ims": point.x}

        found = measures(change=growing)
        runs = found.of(Experiment.PUBLISHERS, SNR)
        assert found.mean("notification_ims", runs) == (20 + 60 + 100) / 3


@pytest.fixture
def point() -> Point:
    (found,) = [
        each for each in points(EvaluationSize.QUICK, 1, PAPER) if each.name == "burst-60000-seed1"
    ]
    return found


class Left:
    """A folder as Spark would leave it, with a run for each algorithm."""

    def __init__(self, out: Path, point: Point) -> None:
        self.folders = Folders(out)
        self._point = point
        self._runs = [f"{point.name}-{algorithm.value}" for algorithm in point.algorithms]
        self._folder = self.folders.metrics("group")
        self._folder.mkdir(parents=True)
        self.truth(**TRUTH)
        self.table("metrics", [{"begin_ns": 2 * SECOND_NS, "deliveries": 3}])
        self.table("structure", [{"trees": 5}])
        self.table("fingerprints", [TRUTH])
        self.table("queues", [{"high_rate_ims": 0, "queue_length_mean": 1000.0}])
        self.table("cases", [{"case": "detour", "count": 4}])

    def truth(self, **found: int) -> None:
        path = self.folders.truth(self._point.name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(found), encoding="utf-8")

    def table(
        self, name: str, rows: list[dict], other: dict[str, list[dict]] | None = None
    ) -> None:
        """Write a table with the same rows for each run, but for those of `other`."""
        lines = [
            {"run": run} | row
            for run in self._runs
            for row in (other or {}).get(run.rpartition("-")[2], rows)
        ]
        schema = pa.Table.from_pylist([{"run": ""} | rows[0]]).schema
        pq.write_table(pa.Table.from_pylist(lines, schema), self._folder / f"{name}.parquet")

    def read(self) -> Measures:
        return read_measures(self.folders, {"group": [self._point]})


@pytest.fixture
def left(tmp_path: Path, point: Point) -> Left:
    return Left(tmp_path, point)


class TestReading:
    def test_tables_are_put_together_for_each_run(self, left: Left, point: Point):
        found = left.read().all
        assert [run.algorithm for run in found] == [BID, SNR, DNR, TNR]
        for run in found:
            assert run.point is point
            assert (run["deliveries"], run["trees"]) == (3, 5)
            assert run.cases == {"detour": 4}
            assert run.is_exact
            assert run.series is None, "there is no table of stability"

    @pytest.mark.parametrize("name", TRUTH)
    def test_run_is_not_exact_when_a_fingerprint_differs(self, left: Left, name: str):
        left.table("fingerprints", [TRUTH], {"dnr": [TRUTH | {name: 0}]})
        assert [run.is_exact for run in left.read().all] == [True, True, False, True]

    def test_run_that_delivered_nothing_is_exact_only_where_nothing_was_asked_for(self, left: Left):
        left.table("fingerprints", [TRUTH], {"snr": []})
        assert [run.is_exact for run in left.read().all] == [True, False, True, True]
        left.truth(rows=0, hash_xor=0, hash_sum=0)
        assert [run.is_exact for run in left.read().all] == [False, True, False, False]

    def test_varied_scenario_is_held_against_the_truth_of_its_base(self, left: Left, point: Point):
        varied = Point(Experiment.SENSITIVITY, 1, point.plan, variation="v", base="the-base")
        left.folders.truth(point.name).rename(left.folders.truth("the-base"))
        (first, *_) = read_measures(left.folders, {"group": [varied]}).all
        assert first.is_exact

    def test_queues_count_where_they_carried_a_high_rate_publisher(self, left: Left):
        idle = {"high_rate_ims": 0, "queue_length_mean": 1000.0}
        busy = [
            {"high_rate_ims": 1, "queue_length_mean": 30.0},
            {"high_rate_ims": 9, "queue_length_mean": 10.0},
        ]
        left.table("queues", [idle], {"snr": [idle, *busy, idle], "dnr": [idle, busy[0]]})
        bid, snr, dnr, _ = left.read().all
        assert "high_rate_queue_mean" not in bid.values
        assert (snr["high_rate_queue_mean"], snr["high_rate_queued"]) == (20, 40)
        assert snr["high_rate_links"] == 2
        assert (dnr["high_rate_queue_mean"], dnr["high_rate_links"]) == (30, 1)

    def test_series_are_in_order_and_count_from_the_begin_of_the_run(self, left: Left):
        blocks = [
            {"block": 1, "end_ns": 5 * SECOND_NS, "delay_max_ns": SECOND_NS // 2},
            {"block": 0, "end_ns": 3 * SECOND_NS, "delay_max_ns": 4 * SECOND_NS},
        ]
        left.table("stability", blocks, {"dnr": blocks[:1]})
        bid, _, dnr, _ = left.read().all
        assert bid.series == Series([1.0, 3.0], [4.0, 0.5])
        assert dnr.series == Series([3.0], [0.5])
        assert bid.series.stabilised_s == 1.0
