from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from octopis.core.routing import Algorithm
from octopis.pipeline.spark.failures import sentence
from octopis.pipeline.spark.trace_folder import read_trace
from octopis.pipeline.spark.trace_source import FACTS
from octopis.trace import Level
from octopis.trace.schemas import SCHEMAS
from support.traces import make_scenario, make_trace


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    scenario = make_scenario(folder / "s")
    return make_trace(scenario, folder / "mine", Algorithm.DNR, Level.FULL)


@pytest.mark.parametrize("table", ["deliveries", "ims", "links"])
def test_tables_come_with_the_facts_of_their_run(spark: SparkSession, trace: Path, table: str):
    frame = spark.read.format("octopis.trace").option("table", table).load(str(trace))
    facts = {"run": "mine", "scenario": "example", "algorithm": "dnr", "seed": 1}
    assert frame.select(*facts).distinct().collect() == [tuple(facts.values())]
    own = read_trace(spark, trace, table)
    assertDataFrameEqual(frame.select(*own.columns), own)
    assert frame.schema[: len(own.columns)] == own.schema


def test_no_fact_has_the_name_of_a_column():
    assert not [table for table, schema in SCHEMAS.items() if set(schema.names) & set(FACTS.names)]


def test_deliveries_are_the_default_and_facts_can_be_left_out(spark: SparkSession, trace: Path):
    frame = spark.read.format("octopis.trace").option("facts", "false").load(str(trace))
    assert frame.columns == read_trace(spark, trace, "deliveries").columns


@pytest.mark.parametrize(
    ("table", "path", "message"),
    [
        ("delivery", "", "a trace has no table 'delivery'; did you mean 'deliveries'"),
        ("deliveries", "gone", "holds no finished trace"),
    ],
)
def test_mistakes_are_said_plainly(
    spark: SparkSession, trace: Path, table: str, path: str, message: str
):
    reader = spark.read.format("octopis.trace").option("table", table)

    def load() -> None:
        reader.load(str(trace / path if path else trace)).collect()

    with pytest.raises(PySparkException) as raised:
        load()
    assert message in sentence(raised.value)
