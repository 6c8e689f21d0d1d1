from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from octopis.pipeline.results.results import write_results
from octopis.trace import Level
from support.traces import make_scenario, make_trace


def test_every_table_is_there_as_parquet_and_as_csv(spark: SparkSession, tmp_path: Path):
    scenario = make_scenario(tmp_path / "s")
    full = make_trace(scenario, tmp_path / "full", level=Level.FULL)
    rows = write_results(spark, [full], tmp_path / "out")
    assert [row["run"] for row in rows] == ["full"]
    names = {"metrics", "cases", "queues", "stability", "queue_series"}
    for name in names:
        table = pq.read_table(tmp_path / "out" / f"{name}.parquet")
        text = pa_csv.read_csv(tmp_path / "out" / f"{name}.csv")
        assert (table.column_names, len(table)) == (text.column_names, len(text))
    assert {path.stem for path in (tmp_path / "out").iterdir()} == names
    stability = pq.read_table(tmp_path / "out" / "stability.parquet").to_pylist()
    assert sum(row["deliveries"] for row in stability) == rows[0]["deliveries"]
