from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.pipeline.ingest import ingest as room
from octopis.pipeline.ingest.folder import IngestReport, read_data
from octopis.pipeline.ingest.ingest import ingest, ingest_synthetic
from octopis.pipeline.spark.writing import CODEC
from support.quotes import HEADER, csv_rows, write_lines


def test_what_is_accepted_and_set_aside_adds_up(spark: SparkSession, tmp_path: Path):
    rows = csv_rows(symbols=3, days=4)
    broken = ["2023-01-02,S009,-1,1,1,1,1", "2023-01-02,S008,1,1,2,1,1", "nonsense"]
    write_lines(tmp_path / "a.csv", HEADER, *rows, *broken)
    write_lines(tmp_path / "b.csv", HEADER, *rows[:2])
    report = ingest(spark, [tmp_path], tmp_path / "out")
    assert (report.read, report.accepted, report.quarantined) == (17, 12, 5)
    assert report.reasons == {
        "high is below low": 1,
        "open is negative": 1,
        "repeats another row": 2,
        "the line does not have 7 fields": 1,
    }
    assert read_data(spark, tmp_path / "out").frame.count() == 12
    aside = spark.read.parquet(str(tmp_path / "out" / "quarantine.parquet"))
    found = {(Path(row["file"]).name, row["line"], row["reason"]) for row in aside.collect()}
    assert ("a.csv", 14, "open is negative") in found
    assert ("b.csv", 3, f"repeats {tmp_path / 'a.csv'}, line 3") in found
    assert {row["text"] for row in aside.collect()} == {*broken, *rows[:2]}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "ingest.json",
        "quarantine.parquet",
        "quotes.parquet",
    ]
    written = msgspec.json.decode(
        (tmp_path / "out" / "ingest.json").read_bytes(), type=IngestReport
    )
    assert written == report


def test_rows_that_get_lost_on_the_way_are_noticed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_lines(tmp_path / "a.csv", HEADER, *csv_rows(symbols=1, days=3))
    honest, kept = room.settling.spread, "date is null or date <> '2023-01-03'"
    lossy = lambda rows, key: honest(rows.where(kept), key)  # noqa: E731 - in its place
    monkeypatch.setattr(room.settling, "spread", lossy)
    with pytest.raises(OperationFailed, match="3 rows were read, but 2 accepted and 0 set aside"):
        ingest(spark, [tmp_path / "a.csv"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_synthetic_quotes_are_ingested_like_others(spark: SparkSession, tmp_path: Path):
    report = ingest_synthetic(spark, 1, 2, tmp_path / "out")
    assert (report.read, report.accepted, report.quarantined) == (1000, 1000, 0)
    assert read_data(spark, tmp_path / "out").frame.count() == 1000


def test_quotes_are_packed_as_the_session_says(spark: SparkSession, tmp_path: Path):
    write_lines(tmp_path / "a.csv", HEADER, *csv_rows(symbols=1, days=3))
    usual = spark.conf.get(CODEC)
    spark.conf.set(CODEC, "gzip")
    try:
        ingest(spark, [tmp_path / "a.csv"], tmp_path / "out")
    finally:
        spark.conf.set(CODEC, usual)
    parts = (tmp_path / "out" / "quotes.parquet").glob("*.parquet")
    filled = [facts for facts in map(pq.read_metadata, parts) if facts.num_rows]
    assert {facts.row_group(0).column(0).compression for facts in filled} == {"GZIP"}


def test_folder_without_data_is_named(spark: SparkSession, tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="holds no ingested data"):
        read_data(spark, tmp_path)
