from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octopis.core.routing import Algorithm
from octopis.demo.deliveries import DELIVERIES, RoundVerdict, check_deliveries, write_deliveries
from octopis.demo.rounds import Round
from octopis.pipeline.scenarios.truth import true_pairs
from octopis.scenario.folder import Scenario

ALL = (Algorithm.BID, Algorithm.SNR, Algorithm.DNR)


@pytest.fixture(scope="module")
def due(spark: SparkSession, scenario: Scenario) -> list[tuple[str, int, str]]:
    rows = true_pairs(spark, scenario).orderBy("publisher", "sequence", "subscription").collect()
    return [tuple(row) for row in rows]


def write(path: Path, runs: dict[str, list[tuple[str, int, str]]]) -> None:
    columns = list(
        zip(
            *(
                (run, *key, place, 1_000_000 * (place % 100 + 1))
                for run, keys in runs.items()
                for place, key in enumerate(keys)
            ),
            strict=True,
        )
    )
    pq.write_table(pa.table(columns, schema=DELIVERIES), path)


def test_what_is_lost_twice_unasked_and_overtaken_is_counted_for_each_algorithm(
    spark: SparkSession, scenario: Scenario, tmp_path: Path, due: list[tuple[str, int, str]]
):
    path = tmp_path / "deliveries.parquet"
    wrong = [*due[2:], due[5], ("hrp", 10**9, "s00000")]
    write(path, {"bid": due, "snr": wrong, "dnr": due[::-1]})
    found = check_deliveries(spark, scenario, path, ALL)
    assert found[Algorithm.BID].faults == {}
    assert found[Algorithm.BID].due == found[Algorithm.BID].delivered == len(due)
    assert found[Algorithm.BID].overtaken == 0
    assert found[Algorithm.SNR].faults == {"lost": 2, "delivered twice": 1, "not asked for": 1}
    assert found[Algorithm.DNR].faults == {}
    assert found[Algorithm.DNR].overtaken > len(due) / 2
    assert found[Algorithm.BID].delay_median_ms == pytest.approx(50, abs=1)
    assert found[Algorithm.BID].delay_p99_ms == pytest.approx(99, abs=1)


def test_round_without_any_delivery_has_lost_them_all(
    spark: SparkSession, scenario: Scenario, tmp_path: Path, due: list[tuple[str, int, str]]
):
    path = tmp_path / "deliveries.parquet"
    write(path, {"bid": due})
    found = check_deliveries(spark, scenario, path, (Algorithm.BID, Algorithm.DNR))
    assert found[Algorithm.DNR] == RoundVerdict(len(due), 0, len(due), 0, 0, 0, None, None)


def test_rounds_are_written_as_they_were_read(rounds: list[Round], tmp_path: Path):
    write_deliveries(rounds, tmp_path / "deliveries.parquet")
    table = pq.read_table(tmp_path / "deliveries.parquet").to_pylist()
    assert len(table) == 8
    assert table[1] == {
        "algorithm": "bid",
        "publisher": "hrp",
        "sequence": 1,
        "subscription": "s00000",
        "delivered_ns": 4_000_000_000,
        "delay_ns": 900_000_000,
    }
