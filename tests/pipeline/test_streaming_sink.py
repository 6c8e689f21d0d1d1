"""Spark writes to real brokers: each row is a notification, published once."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octopis.broker.settings import Durability
from octopis.client.address import Address, parse_addresses
from octopis.client.sync_client import connect_sync
from octopis.core.routing import Algorithm
from octopis.core.wire.frames import encode
from octopis.errors import InvalidConfiguration
from octopis.pipeline.streaming.rows import Rows
from octopis.pipeline.streaming.sink_options import sink_options
from octopis.pipeline.streaming.staging import Attempt, Stage
from support.durable_disk import broker_with_disk
from support.live import in_a_thread, line, overlay
from support.secure import Folder
from support.sinks import kept, read, run, save, stream_of


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    folder = tmp_path_factory.mktemp("disk")
    durable = overlay(line(2), Algorithm.TNR, durability=Durability(str(folder)))
    with in_a_thread(durable) as found:
        yield list(found.values())


def test_rows_of_a_stream_are_published_once_also_where_a_batch_runs_again(
    spark: SparkSession, urls: list[str], tmp_path: Path
):
    kept(urls[1], "stream", "n >= 0")
    frame = spark.range(5_000).selectExpr("id AS n", "CAST(id AS STRING) AS name")
    stream = stream_of(spark, tmp_path / "in", frame)
    run(stream, urls[0], tmp_path / "c")
    found = read(urls[1], "stream", 5_000)
    assert sorted(each.attributes["n"] for each in found) == list(range(5_000))
    assert all(each.attributes["name"] == str(each.attributes["n"]) for each in found)
    # Spark has not noted that the batch is done: it runs it again.
    (tmp_path / "c" / "commits" / "0").unlink()
    (tmp_path / "c" / "commits" / ".0.crc").unlink(missing_ok=True)
    run(
        stream_of(spark, tmp_path / "in", frame.selectExpr("n + 5000 AS n", "name")),
        urls[0],
        tmp_path / "c",
    )
    assert {each.attributes["n"] for each in read(urls[1], "stream", 10_000)} == set(range(10_000))


def test_columns_become_attributes_and_nulls_are_absent(spark: SparkSession, urls: list[str]):
    kept(urls[1], "kinds", "kind = 'kinds'")
    frame = spark.sql(
        """
        SELECT 'kinds' AS kind, 1 AS i, CAST(2.5 AS FLOAT) AS f, 0.25D AS d, true AS b,
            CAST(12.75 AS DECIMAL(10, 2)) AS money, CAST(7 AS DECIMAL(18, 0)) AS whole,
            DATE '2026-03-01' AS day, TIMESTAMP '2026-03-01 09:30:00.25Z' AS at,
            TIMESTAMP_NTZ '2026-03-01 09:30:00' AS local, CAST(NULL AS STRING) AS gone,
            CAST(NULL AS BIGINT) AS none, 'wörds' AS _payload
        """
    )
    save(frame, urls[0])
    (found,) = read(urls[1], "kinds", 1)
    assert found.attributes == {
        "kind": "kinds",
        "i": 1,
        "f": 2.5,
        "d": 0.25,
        "b": True,
        "money": 12.75,
        "whole": 7,
        "day": "2026-03-01",
        "at": "2026-03-01T09:30:00.250000Z",
        "local": "2026-03-01T09:30:00.000000",
    }
    assert type(found.attributes["whole"]) is int
    assert found.payload == "wörds".encode()
    assert found.publisher.startswith("spark-")
    assert datetime.fromtimestamp(found.intended_ns / 1e9, UTC).year >= 2025


def test_rows_that_cannot_be_published_are_left_out_or_fail_the_batch(
    spark: SparkSession, urls: list[str]
):
    kept(urls[1], "bad", "kind = 'bad'")
    frame = spark.range(10).selectExpr(
        "'bad' AS kind",
        "id AS n",
        "CASE WHEN id = 3 THEN CAST('NaN' AS DOUBLE) ELSE 1D END AS price",
        "CASE WHEN id IN (3, 5) THEN repeat('x', 65536) ELSE 'x' END AS text",
    )
    with pytest.raises(PySparkException, match=r"mode is FAILFAST: column '(price|text)' is"):
        save(frame, urls[0], mode="FAILFAST")
    save(frame, urls[0])
    found = read(urls[1], "bad", 8)
    assert {each.attributes["n"] for each in found} == set(range(10)) - {3, 5}


def test_a_transaction_is_published_once(spark: SparkSession, urls: list[str]):
    kept(urls[1], "txn", "kind = 'txn'")
    frame = spark.range(4).selectExpr("'txn' AS kind", "id AS n")
    for version in ("1", "1", "0", "2"):
        save(frame, urls[0], txnAppId="t", txnVersion=version)
    assert len(read(urls[1], "txn", 8)) == 8


def test_a_frame_that_is_written_once_takes_no_place_among_the_queries_of_a_broker(
    spark: SparkSession, tmp_path: Path
):
    frame = spark.range(2)
    with broker_with_disk(tmp_path, queries_max=1) as url:
        for _ in range(2):
            save(frame, url)
        save(frame, url, txnAppId="t", txnVersion="1")
        save(frame, url)
        with pytest.raises(Exception, match=r"remembers 1 queries .*durability\.queries_max"):
            save(frame, url, txnAppId="another", txnVersion="1")
        save(frame, url, txnAppId="t", txnVersion="2")


def test_attempts_of_an_earlier_driver_are_not_mixed_with_those_of_this_one(urls: list[str]):
    kept(urls[1], "mixed", "kind = 'mixed'")
    (address,) = parse_addresses(urls[0])
    stage = Stage(address, "one query")

    def staged(numbers: list[int]) -> Attempt:
        attempt = Attempt("mixed", 0, 0)
        rows = [({"kind": "mixed", "n": n}, b"", stage.name, n, 0) for n in numbers]
        stage.stage(attempt, 0, encode(rows))
        stage.wait()
        return attempt

    staged([5, 4, 3])  # its driver died before it could commit; rows may come in another order
    attempt = staged([1, 2, 3, 4, 5])
    stage.commit("mixed", 0, [(0, attempt.number, 5)])
    stage.close()
    assert [each.attributes["n"] for each in read(urls[1], "mixed", 5)] == [1, 2, 3, 4, 5]


def test_an_overlay_without_a_disk_is_refused_unless_once_is_not_asked_for(spark: SparkSession):
    frame = spark.range(3).selectExpr("id AS n")
    with in_a_thread(overlay(line(1))) as found:
        (url,) = found.values()
        with pytest.raises(PySparkException, match="has no disk, so it cannot publish a batch"):
            save(frame, url)
        with connect_sync(url) as client, client.subscribe("n >= 0", timeout_s=20) as stream:
            save(frame, url, atLeastOnce="true")
            assert {next(stream).attributes["n"] for _ in range(3)} == {0, 1, 2}


def test_at_least_once_logs_in_and_leaves_out_what_is_too_long(spark: SparkSession, tmp_path: Path):
    folder = Folder(tmp_path / "sec", line(1))
    credentials = str(folder.files.credentials("alice"))
    frame = spark.range(4).selectExpr(
        "id AS n", "repeat('x', CAST(IF(id = 2, 9e6, 4e6) AS INT)) AS _payload"
    )
    with in_a_thread(folder.overlay(line(1))) as found:
        (url,) = found.values()
        with pytest.raises(PySparkException):
            save(frame, url, atLeastOnce="true")
        with (
            connect_sync(url, credentials=credentials) as client,
            client.subscribe("n >= 0", timeout_s=60) as stream,
        ):
            said = {"atLeastOnce": "true", "credentialsFile": credentials}
            save(frame, url, **said)
            assert {next(stream).attributes["n"] for _ in range(3)} == {0, 1, 3}
            with pytest.raises(PySparkException, match=r"FAILFAST: the row is longer than 8,388,"):
                save(frame, url, mode="FAILFAST", **said)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("array(1) AS many", "'many' is array<int>, which is no value of an attribute: explode"),
        ("map('a', 1) AS m", "'m' is map<string,int>"),
        ("named_struct('a', 1) AS s", "'s' is struct<a:int>"),
        ("CAST('x' AS BINARY) AS raw", "'raw' is binary.*call it _payload"),
        ("CAST(1 AS DECIMAL(38, 10)) AS exact", r"'exact' is decimal\(38,10\).*cast it to DOUBLE"),
        ("NULL AS nothing", "'nothing' is void"),
        ("1L AS _position", r"column _position is what the source says.*\.drop"),
        ("1 AS _payload", "_payload is BINARY or STRING, not int"),
        (f"1 AS `{'x' * 256}`", "1 to 255 characters, not 256"),
    ],
)
def test_columns_that_cannot_be_attributes_are_refused_by_name(
    spark: SparkSession, column: str, reason: str
):
    with pytest.raises(InvalidConfiguration, match=reason):
        Rows(spark.sql(f"SELECT {column}").schema)


def test_what_is_wrong_is_said_before_a_batch_is_written(spark: SparkSession):
    frame = spark.range(1)
    with pytest.raises(PySparkException, match=r"no option 'adress'.*address"):
        frame.write.format("octopis").option("adress", "x").mode("append").save()
    with pytest.raises(PySparkException, match="cannot be replaced: write with mode"):
        frame.write.format("octopis").mode("overwrite").save("octopis://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "say where"),
        ({"address": "http://x"}, "no address of a broker"),
        ({"address": "octopis://a,b"}, "names several brokers"),
        ({"address": "octopis://a", "secret": "s"}, "secretFile"),
        ({"address": "octopis://a", "mode": "DROP"}, "PERMISSIVE or FAILFAST"),
        ({"address": "octopis://a", "txnAppId": "x"}, "given together"),
        (
            {"address": "octopis://a", "txnAppId": "x", "txnVersion": "1", "atLeastOnce": "true"},
            "published once, and atLeastOnce each time",
        ),
        ({"address": "octopis://a", "checkpointLocation": "c"}, "option of df.writeStream"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], reason: str):
    with pytest.raises(InvalidConfiguration, match=reason):
        sink_options(options, streams=False)


def test_one_address_is_the_home_of_a_sink():
    assert sink_options({"address": "octopis://a:1"}, streams=True).home == Address("a", 1)


def test_snippets_of_the_page_run(spark: SparkSession, urls: list[str], tmp_path: Path):
    kept(urls[1], "page", "kind = 'page'")
    page = (Path(__file__).parents[2] / "docs" / "streaming.md").read_text(encoding="utf-8")
    frame = spark.range(2).selectExpr("'page' AS kind", "id AS n")
    names: dict[str, Any] = {"frame": frame, "checkpoint": str(tmp_path / "c")}
    names["other_checkpoint"] = str(tmp_path / "d")
    names["alerts"] = stream_of(spark, tmp_path / "in", frame)
    written = page.partition("## Write")[2]
    for code in re.findall(r"```py\n(.*?)```", written, re.DOTALL):
        placed = code.replace("octopis://127.0.0.1:7400", urls[0])
        exec(compile(placed, "streaming.md", "exec"), names)  # noqa: S102 - our own page
    for name in ("query", "in_batches"):
        names[name].processAllAvailable()
        names[name].stop()
    names["publish"](frame, 0)  # this batch was published
    assert len(read(urls[1], "page", 6)) == 6
