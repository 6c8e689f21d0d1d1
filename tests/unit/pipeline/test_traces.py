import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration
from octopis.pipeline.spark.session import sentence
from octopis.pipeline.spark.traces import (
    FACTS,
    TraceReader,
    Traces,
    check_table,
    open_trace,
    read_trace,
)
from octopis.trace import Level
from octopis.trace.schemas import SCHEMAS
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


def test_runs_are_named_by_their_folders_whatever_these_are_called(
    spark: SparkSession, trace: Path
):
    names = {"plain", "a b+c", "50%20", "[x]{y}", "ü*?"}
    for name in names:
        shutil.copytree(trace, trace.parent / name)
    rows = Traces(spark, [trace.parent / name for name in names]).table("deliveries")
    assert rows is not None
    counts = {row["run"]: row["count"] for row in rows.groupBy("run").count().collect()}
    assert counts == dict.fromkeys(names, open_trace(trace).deliveries)


@pytest.fixture(scope="module")
def full_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    scenario = make_scenario(folder / "s")
    return make_trace(scenario, folder / "mine", Algorithm.DNR, Level.FULL)


@pytest.mark.parametrize("table", ["deliveries", "ims", "links"])
def test_tables_come_with_the_facts_of_their_run(spark: SparkSession, full_trace: Path, table: str):
    frame = spark.read.format("octopis.trace").option("table", table).load(str(full_trace))
    facts = {"run": "mine", "scenario": "example", "algorithm": "dnr", "seed": 1}
    assert frame.select(*facts).distinct().collect() == [tuple(facts.values())]
    own = read_trace(spark, full_trace, table)
    assertDataFrameEqual(frame.select(*own.columns), own)
    assert frame.schema[: len(own.columns)] == own.schema


def test_no_fact_has_the_name_of_a_column():
    assert not [table for table, schema in SCHEMAS.items() if set(schema.names) & set(FACTS.names)]


def test_deliveries_are_the_default_and_facts_can_be_left_out(
    spark: SparkSession, full_trace: Path
):
    frame = spark.read.format("octopis.trace").option("facts", "false").load(str(full_trace))
    assert frame.columns == read_trace(spark, full_trace, "deliveries").columns


def test_several_runs_are_read_at_once(spark: SparkSession, full_trace: Path):
    other = full_trace.with_name("other")
    if not other.exists():
        shutil.copytree(full_trace, other)
    frame = spark.read.format("octopis.trace").load([str(full_trace), str(other)])
    counts = {row["run"]: row["count"] for row in frame.groupBy("run").count().collect()}
    assert counts == dict.fromkeys(("mine", "other"), open_trace(full_trace).deliveries)


@pytest.mark.parametrize("by", ["option", "schema"])
def test_only_the_columns_that_are_named_are_read(
    spark: SparkSession, full_trace: Path, by: str, monkeypatch: pytest.MonkeyPatch
):
    reader = TraceReader([full_trace], "deliveries", ["run", "delay_ns"])
    read: list[list[str]] = []
    honest = pq.ParquetFile.read_row_group

    def noted(file: pq.ParquetFile, number: int, columns: list[str]) -> pa.Table:
        read.append(columns)
        return honest(file, number, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    (batch,) = reader.read(reader.partitions()[0])
    assert (batch.schema.names, read) == (["run", "delay_ns"], [["delay_ns"]])
    source = spark.read.format("octopis.trace")
    if by == "option":
        frame = source.option("columns", "run, delay_ns").load(str(full_trace))
    else:
        frame = source.schema("run string, delay_ns long").load(str(full_trace))
    assert frame.columns == ["run", "delay_ns"]
    own = read_trace(spark, full_trace, "deliveries").select("delay_ns")
    assertDataFrameEqual(frame.select("delay_ns"), own)


def test_column_that_is_not_there_or_of_another_type_is_named(
    spark: SparkSession, full_trace: Path
):
    source = spark.read.format("octopis.trace")
    with pytest.raises(PySparkException) as raised:
        source.option("columns", "delay").load(str(full_trace)).collect()
    assert "the table has no column 'delay'; did you mean 'delay_ns'" in sentence(raised.value)
    with pytest.raises(PySparkException) as raised:
        spark.read.format("octopis.trace").schema("hops long").load(str(full_trace)).collect()
    assert "the column hops is smallint, not bigint" in sentence(raised.value)


@pytest.mark.parametrize(
    ("table", "path", "message"),
    [
        ("delivery", "", "a trace has no table 'delivery'; did you mean 'deliveries'"),
        ("deliveries", "gone", "holds no finished trace"),
    ],
)
def test_mistakes_are_said_plainly(
    spark: SparkSession, full_trace: Path, table: str, path: str, message: str
):
    reader = spark.read.format("octopis.trace").option("table", table)

    def load() -> None:
        reader.load(str(full_trace / path if path else full_trace)).collect()

    with pytest.raises(PySparkException) as raised:
        load()
    assert message in sentence(raised.value)
