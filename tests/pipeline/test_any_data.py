"""Data of any shape: read from files and tables, with a reason for every row that is not sound."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.folder import read_data
from octopis.pipeline.ingest.ingest import ingest, ingest_table, open_table
from octopis.pipeline.ingest.mapping import Kind, mapping_of, parse_mapping, with_times
from support.quotes import write_lines
from support.readings import ATTRIBUTES, readings, write_readings

MAPPING = """
name = "readings"
key = ["device", "at"]

[attributes.device]
column = "device.id"
type = "text"
required = true

[attributes.at]
type = "time"
required = true

[attributes.temperature]
type = "number"
min = -50
max = 60

[attributes.fahrenheit]
derive = "temperature * 1.8 + 32"

[attributes.inverse]
derive = "1 / (temperature - 20)"

[attributes.hour]
derive = "date_trunc('hour', to_timestamp(at))"

[attributes.rise]
change_of = "temperature"
digits = 1

[checks]
"the sensor is broken" = "temperature < -40"
"""


def rows_of(spark: SparkSession, folder: Path) -> list[tuple]:
    return sorted(map(tuple, read_data(spark, folder).frame.collect()), key=str)


def aside(spark: SparkSession, folder: Path) -> dict[int, str]:
    found = spark.read.parquet(str(folder / "quarantine.parquet")).collect()
    return {row["line"]: row["reason"] for row in found}


def refusal(spark: SparkSession, path: Path, words: str, out: Path) -> str:
    with pytest.raises(InvalidConfiguration) as raised:
        ingest(spark, [path], out, mapping_of(words))
    assert not out.exists()
    return str(raised.value)


def test_all_formats_give_the_same_rows(spark: SparkSession, tmp_path: Path):
    rows = readings(60)
    write_readings(tmp_path / "a.jsonl", rows)
    (tmp_path / "b.ndjson.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    flat = [
        [row["device"]["id"], row["device"]["site"], row["at"], row["temperature"],
         row.get("humidity", ""), str(row["ok"]).lower()]
        for row in rows
    ]  # fmt: skip
    header = "id,site,At,temperature,humidity,ok"
    write_lines(tmp_path / "c.csv", header, *(",".join(map(str, each)) for each in flat))
    moments = [datetime.fromisoformat(row["at"]).astimezone(UTC) for row in rows]
    table = pa.Table.from_pylist([{**row, "at": at} for row, at in zip(rows, moments, strict=True)])
    pq.write_table(table, tmp_path / "d.parquet")
    spark.read.parquet(str(tmp_path / "d.parquet")).createOrReplaceTempView("some_readings")

    in_files = with_times(mapping_of(ATTRIBUTES), "ns")
    in_csv = with_times(mapping_of("device=id,site,at:time,temperature,humidity,ok"), "ns")
    mappings = {
        "a.jsonl": in_files,
        "b.ndjson.gz": in_files,
        "c.csv": in_csv,
        "d.parquet": in_files,
    }
    found = []
    for name, mapping in mappings.items():
        report = ingest(spark, [tmp_path / name], tmp_path / f"out-{name}", mapping)
        assert (report.read, report.accepted) == (60, 60)
        found.append(rows_of(spark, tmp_path / f"out-{name}"))
    frame = open_table(spark, "some_readings")
    ingest_table(spark, frame, "some_readings", tmp_path / "out", in_files)
    found.append(rows_of(spark, tmp_path / "out"))
    kinds = {name: each.kind for name, each in report.attributes.items()}
    assert kinds == {
        "device": Kind.TEXT, "site": Kind.TEXT, "at": Kind.TIME, "temperature": Kind.NUMBER,
        "humidity": Kind.INTEGER, "ok": Kind.BOOLEAN,
    }  # fmt: skip
    assert found[0][0][2] == 1_714_521_600_000_000_000
    assert all(each == found[0] for each in found)
    assert sum(row[4] is None for row in found[0]) == 6


def test_mapping_derives_checks_and_sets_aside(spark: SparkSession, tmp_path: Path):
    def row(device: object, at: object, temperature: object) -> dict:
        return {"device": {"id": device}, "at": at, "temperature": temperature}

    rows = [
        row("b", "2024-05-01T12:00:00Z", 20),
        row("a", "2024-05-01T12:30:00Z", 30.0),
        row("a", "2024-05-01T12:00:00Z", 25.0),
        row("a", "2024-05-01T14:00:00+02:00", 99),
        row("a", "2024-05-01T14:00:00+02:00", 26),
        row("a", "2024-05-01T14:00:00+02:00", -45),
        row(None, "2024-05-01T12:00:00Z", 1),
        row("a", "noon", 1),
        row("a", "2024-05-01T13:00:00Z", "hot"),
        row("c", "2024-05-01T13:00:00Z", None),
    ]
    path = write_readings(tmp_path / "a.jsonl", rows, "{", "", '{"device": "a"}')
    report = ingest(spark, [path], tmp_path / "out", parse_mapping(MAPPING, "m.toml"))
    assert (report.name, report.read, report.accepted) == ("readings", 13, 4)
    shape = "the line is not such a JSON object"
    assert aside(spark, tmp_path / "out") == {
        4: "temperature is above 60",
        5: f"repeats {path}, line 3",
        6: "the sensor is broken",
        7: "device is missing",
        8: "at is not a time",
        9: "temperature is not a number",
        11: shape,
        12: "the line is empty",
        13: shape,
    }
    texts = spark.read.parquet(str(tmp_path / "out" / "quarantine.parquet")).collect()
    assert {each["line"]: each["text"] for each in texts}[5] == json.dumps(rows[4])
    hour = "2024-05-01T12:00:00.000000Z"
    assert rows_of(spark, tmp_path / "out") == [
        ("a", hour, 25.0, 77.0, 0.2, hour, None),
        ("a", "2024-05-01T12:30:00.000000Z", 30.0, 86.0, 0.1, hour, 20.0),
        ("b", hour, 20.0, 68.0, None, hour, None),  # nothing is divided by zero
        ("c", "2024-05-01T13:00:00.000000Z", None, None, None, hour.replace("12", "13"), None),
    ]


def test_names_of_attributes_may_be_any(spark: SparkSession, tmp_path: Path):
    path = write_lines(tmp_path / "a.csv", "text,file,number,reason,a.b", "x,y,1,z,2", "x,y,b,z,3")
    words = "text,file,number:integer,reason,a.b"
    report = ingest(spark, [path], tmp_path / "out", mapping_of(words))
    assert report.reasons == {"number is not a number": 1}
    assert rows_of(spark, tmp_path / "out") == [("x", "y", 1, "z", 2)]


def test_all_columns_but_some_are_taken_as_they_are(spark: SparkSession, tmp_path: Path):
    path = write_readings(tmp_path / "a.jsonl", readings(5))
    mapping = parse_mapping(
        'rest = true\nleave_out = ["device.site"]\n[attributes.id]\ncolumn = "device.id"', "m.toml"
    )
    ingest(spark, [path], tmp_path / "out", mapping)
    data = read_data(spark, tmp_path / "out")
    assert data.frame.columns == ["id", "at", "humidity", "ok", "temperature"]
    assert data.attributes["at"].kind is Kind.TIME
    assert ingest(spark, [path], tmp_path / "all", mapping_of("*")).accepted == 5
    names = read_data(spark, tmp_path / "all").frame.columns
    assert names == ["at", "device.id", "device.site", "humidity", "ok", "temperature"]


def test_what_cannot_be_is_refused_with_a_hint(spark: SparkSession, tmp_path: Path):
    path = write_readings(tmp_path / "a.jsonl", [{"temperature": 1.5, "tags": ["a"], "o": {}}])
    out = tmp_path / "out"
    said = refusal(spark, path, "temprature", out)
    assert "no column for temprature" in said
    assert "did you mean 'temperature'" in said
    assert "the column tags is a list" in refusal(spark, path, "temperature,tags", out)
    assert "the column tags is a list" in refusal(spark, path, "*", out)
    csv = write_lines(tmp_path / "b.csv", "temperature", "1")
    with pytest.raises(InvalidConfiguration, match=r"b\.csv and a\.jsonl are of different formats"):
        ingest(spark, [csv, path], out, mapping_of("temperature"))
    both = ingest(spark, [csv, path], out, mapping_of("temperature:number"))
    assert both.accepted == 2, "where all types are said, formats may be mixed"
    with pytest.raises(InvalidConfiguration, match="Spark knows no table 'gone'"):
        open_table(spark, "gone")


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("[attributes.y]\nderive = 'x +'", r"attributes\.y\.derive does not parse"),
        ("[attributes.y]\nderive = 'xx + 1'", "there is no attribute 'xx'; did you mean 'x'"),
        ("[attributes.y]\nderive = 'array(x)'", "gives array<double>, which is no attribute"),
        ("[attributes.y]\nderive = 'sum(x) OVER ()'", "an expression sees one row"),
        ("[attributes.y]\nderive = 'sum(x)'", r"attributes\.y\.derive: "),
        ("[checks]\nodd = 'x + 1'", "neither true nor false"),
    ],
)
def test_expressions_that_spark_does_not_understand(
    spark: SparkSession, tmp_path: Path, tables: str, said: str
):
    path = write_lines(tmp_path / "a.csv", "x", "1")
    mapping = parse_mapping(f"[attributes.x]\ntype = 'number'\n{tables}", "m.toml")
    with pytest.raises(InvalidConfiguration, match=said):
        ingest(spark, [path], tmp_path / "out", mapping)
    assert not (tmp_path / "out").exists()


def test_rows_of_a_table_have_no_lines(spark: SparkSession, tmp_path: Path):
    rows = [(1.0, "a"), (float("nan"), "b"), (2.0, None)]
    frame = spark.createDataFrame(rows, "x double, n string")
    report = ingest_table(spark, frame, "t", tmp_path / "out", mapping_of("*"))
    assert report.reasons == {"x is not a number": 1}
    assert aside(spark, tmp_path / "out") == {None: "x is not a number"}
    assert rows_of(spark, tmp_path / "out") == [(1.0, "a"), (2.0, None)]
