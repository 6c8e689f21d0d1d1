from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octopis.errors import InvalidConfiguration
from octopis.pipeline.spark.trace_folder import check_table, open_trace, read_trace
from support.traces import make_scenario, make_trace


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return make_trace(make_scenario(tmp_path / "s"), tmp_path / "trace")


def test_tables_are_read_with_the_schema_of_every_trace(spark: SparkSession, trace: Path):
    deliveries = read_trace(spark, trace, "deliveries")
    assert deliveries.count() == open_trace(trace).deliveries > 0
    assert dict(deliveries.dtypes)["publisher"] == "string"


def test_table_of_another_level_is_named(trace: Path):
    with pytest.raises(InvalidConfiguration, match=r"no table of ims: .* level deliveries"):
        check_table(trace, "ims")


def test_trace_that_is_cut_off_is_named(trace: Path):
    path = trace / "deliveries.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidConfiguration, match="not a whole Parquet file: was it cut off"):
        open_trace(trace)
    path.unlink()
    with pytest.raises(InvalidConfiguration, match="the trace is not whole"):
        open_trace(trace)


def test_trace_without_its_summary_or_with_other_rows_is_named(trace: Path):
    rows = pq.read_table(trace / "deliveries.parquet")
    pq.write_table(rows[1:], trace / "deliveries.parquet")
    with pytest.raises(InvalidConfiguration, match=rf"holds {len(rows) - 1} of the {len(rows)}"):
        open_trace(trace)
    (trace / "run.json").unlink()
    with pytest.raises(InvalidConfiguration, match="holds no finished trace"):
        open_trace(trace)
