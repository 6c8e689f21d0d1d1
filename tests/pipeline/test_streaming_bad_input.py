"""What is wrong with a stream is one sentence, as a user of Spark meets it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from octopis.core.routing import Algorithm
from octopis.pipeline.spark.session import sentence
from support.durable_disk import Desk, broker_with_disk, desk
from support.live import in_a_thread, line, overlay


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker_with_disk(tmp_path_factory.mktemp("disk"), quota_bytes=4 * 2**20) as found:
        yield found


@pytest.fixture(scope="module")
def at_broker(url: str) -> Iterator[Desk]:
    with desk(url) as found:
        found.make("here")
        found.publish({"n": n} for n in range(5))
        with desk(url, secret="theirs") as others:  # noqa: S106 - of this test
            others.make("theirs")
        yield found


def started(frame: DataFrame, checkpoint: Path, kind: str = "noop", **options: str) -> None:
    writer = frame.writeStream.format(kind).options(**options)
    checkpointed = writer.option("checkpointLocation", str(checkpoint))
    checkpointed.trigger(availableNow=True).start().awaitTermination()


@pytest.fixture
def refusal(
    spark: SparkSession, url: str, at_broker: Desk, tmp_path: Path
) -> Callable[[dict[str, str], str], PySparkException]:
    """Read with these options and columns, which cannot be, and return what Spark raises."""
    assert at_broker.info("here").end == 5

    def read(said: dict[str, str], columns: str) -> PySparkException:
        options = {"address": url, "subscription": "here"} | said
        try:
            frame = spark.readStream.format("octopis").options(**options).schema(columns).load()
            started(frame, tmp_path / "checkpoint")
        except PySparkException as failure:
            return failure
        raise AssertionError("it was read")

    return read


@pytest.mark.parametrize(
    ("said", "columns", "told"),
    [
        ({"address": "http://127.0.0.1:1"}, "n LONG", "write octopis://host:port"),
        ({"address": "octopis://127.0.0.1:1"}, "n LONG", "no broker can be reached at octopis://"),
        ({"filter": "n >"}, "n LONG", "at column"),
        ({"dialect": "mysql"}, "n LONG", "mysql"),
        ({}, "n DECIMAL(10,2)", "'n' is DECIMAL(10,2), and attributes are text, numbers"),
        ({}, "n LONG, N LONG", "differ at most by case"),
        ({}, "n LONG, _position STRING", "_position is BIGINT, not STRING"),
        ({"subscription": "theirs"}, "n LONG", "is another's: is the secret the right one?"),
        ({"subscription": "gone"}, "n LONG", "no durable subscription 'gone' here, and no filter"),
        ({"subscription": "here", "filter": "n > 3"}, "n LONG", "asks for 'n >= 0', not for"),
    ],
)
def test_what_is_wrong_with_a_source_is_one_sentence(
    refusal: Callable[[dict[str, str], str], PySparkException],
    said: dict[str, str],
    columns: str,
    told: str,
):
    failure = refusal(said, columns)
    assert told in sentence(failure)
    assert told in str(failure), "Spark's own error has it, too"


def test_another_filter_of_a_checkpoint_and_another_subscription_are_refused_naming_both(
    spark: SparkSession, url: str, at_broker: Desk, tmp_path: Path
):
    at_broker.make("there")

    def run(**options: str) -> None:
        reader = spark.readStream.format("octopis").option("address", url).options(**options)
        started(reader.schema("n LONG").load(), tmp_path / "checkpoint")

    run(subscription="here")
    for options, told in (
        ({"subscription": "there"}, "is of the subscription 'here', not of 'there'"),
        ({"subscription": "here", "filter": "n < 9"}, "asks for 'n >= 0', not for 'n < 9'"),
    ):
        for loss in ("true", "false"):  # it is no loss of data, and never let pass
            with pytest.raises(PySparkException) as failure:
                run(**options, failOnDataLoss=loss)
            assert told in sentence(failure.value)


def rows_with(spark: SparkSession, folder: Path, *columns: str) -> DataFrame:
    """Return a stream of four rows with some columns."""
    frame = spark.range(4).selectExpr("id AS n", *columns)
    frame.write.parquet(str(folder))
    return spark.readStream.schema(frame.schema).parquet(str(folder))


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("array(1) AS many", "the column 'many' is array<int>, which is no value of an attribute"),
        ("1 AS ``", "a column's name has 1 to 255 characters, not 0"),
        ("id AS _position", '.drop("_position")'),
    ],
)
def test_columns_that_no_notification_can_have_fail_a_sink_by_name(
    spark: SparkSession, url: str, tmp_path: Path, column: str, told: str
):
    stream = spark.readStream.format("rate").load().selectExpr("value AS id")
    with pytest.raises(PySparkException) as failure:
        started(stream.selectExpr(column), tmp_path / "checkpoint", "octopis", address=url)
    assert told in sentence(failure.value)


def test_rows_that_cannot_be_published_fail_a_stream_or_are_left_out_and_counted(
    spark: SparkSession, url: str, at_broker: Desk, tmp_path: Path, caplog: Any
):
    at_broker.make("bad", "kind = 'bad'")
    nan = "CASE WHEN id = 3 THEN CAST('NaN' AS DOUBLE) ELSE 1D END AS price"
    stream = rows_with(spark, tmp_path / "in", "'bad' AS kind", nan)
    with pytest.raises(PySparkException) as failure:
        started(stream, tmp_path / "a", "octopis", address=url, mode="FAILFAST")
    told = "1 rows cannot be published, and the mode is FAILFAST: column 'price' is NaN"
    assert told in sentence(failure.value)
    started(stream, tmp_path / "b", "octopis", address=url)
    assert sorted(each["n"] for each in at_broker.read("bad", 3)) == [0, 1, 2]
    until = time.monotonic() + 10
    while "1 rows were refused: column 'price' is NaN" not in caplog.text:
        assert time.monotonic() < until, "the user is told in the process of the program"
        time.sleep(0.05)


def test_a_batch_that_is_longer_than_a_broker_may_stage_fails_with_what_to_do(
    spark: SparkSession, url: str
):
    frame = spark.range(1, numPartitions=1).selectExpr("explode(sequence(1, 2000)) AS n")
    long = frame.selectExpr("n", "repeat('x', 1000) AS _payload")
    with pytest.raises(PySparkException) as failure:
        long.write.format("octopis").mode("append").save(url)
    told = sentence(failure.value)
    assert "838,860 bytes, 20% of durability.quota_bytes, may be staged" in told
    assert "maxOffsetsPerTrigger" in told


def test_without_a_disk_a_stream_says_why_and_what_to_do(spark: SparkSession, tmp_path: Path):
    with in_a_thread(overlay(line(1), Algorithm.TNR)) as urls:
        options = {"address": urls["a,0"], "subscription": "risk", "filter": "n > 1"}
        frame = spark.readStream.format("octopis").options(**options).schema("n LONG").load()
        with pytest.raises(PySparkException) as failure:
            started(frame, tmp_path / "a")
        told = sentence(failure.value)
        assert "--durable" in told
        assert 'at most once, without a durable one: .option("subscription", "")' in told
