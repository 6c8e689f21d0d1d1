"""Files as they come: what is odd about them never changes a row in silence."""

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.folder import read_data
from octopis.pipeline.ingest.headers import check_headers
from octopis.pipeline.ingest.ingest import ingest
from octopis.pipeline.ingest.mapping import load_mapping, mapping_of, parse_mapping
from octopis.pipeline.ingest.source_files import first_line
from octopis.pipeline.spark.session import sentence

OPEN = "a quote does not end in the line, and a row is one line"
MOMENTS = [
    dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=dt.UTC),
    dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
    dt.datetime(1600, 1, 1, tzinfo=dt.UTC),
]
IN_TEXT = ["2024-03-31T02:30:00.000000Z", "1969-12-31T23:59:59.500000Z"]


class Found:
    """What an ingest has left of a file: its rows, and the reasons by line."""

    def __init__(self, spark: SparkSession, path: Path, mapping: Any) -> None:
        out = path.with_name("out")
        check_headers([path], mapping)
        self.report = ingest(spark, [path], out, mapping)
        data = read_data(spark, out)
        self.kinds = {name: each.kind.value for name, each in data.attributes.items()}
        self.rows = sorted(map(tuple, data.frame.collect()), key=str)
        aside = spark.read.parquet(str(out / "quarantine.parquet")).collect()
        self.aside = {row["line"]: row["reason"] for row in aside}


@pytest.mark.parametrize("content", [b"a,b\nx,y\nu,v\n", b"\xef\xbb\xbfa,b\r\nx,y\r\nu,v"])
def test_a_header_is_no_row_where_its_names_would_do_as_values(
    spark: SparkSession, tmp_path: Path, content: bytes
):
    (tmp_path / "a.csv").write_bytes(content)
    found = Found(spark, tmp_path / "a.csv", mapping_of("a,b"))
    assert found.rows == [("u", "v"), ("x", "y")]
    assert (found.report.read, found.report.accepted, found.aside) == (2, 2, {})


def test_each_file_has_a_header_and_a_line_like_it_further_on_is_a_row(
    spark: SparkSession, tmp_path: Path
):
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.csv").write_text(f"k\n{name}\nk\n")
    (tmp_path / "in" / "c.csv.gz").write_bytes(gzip.compress(b"k\nc\nk\n"))
    found = Found(spark, tmp_path / "in", mapping_of("k:text"))
    assert found.rows == [("a",), ("b",), ("c",), ("k",), ("k",), ("k",)]


def test_parts_of_a_row_of_several_lines_are_set_aside(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.csv").write_text('a,b\n1,"x\n2,y"\n3,"he said ""z"""\n4,5" pipe\n')
    found = Found(spark, tmp_path / "a.csv", mapping_of("a:integer,b:text"))
    assert found.rows == [(3, 'he said "z"')]
    assert found.aside == {2: OPEN, 3: OPEN, 5: OPEN}


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        ("a,a,b\n1,2,3\n", "*", "2 columns may be meant by 'a'"),
        ("a,a,b\n1,2,3\n", "a:integer,b:integer", "2 columns may be meant by 'a'"),
        ("a b,a_b\n1,2\n", "AB:integer", "2 columns may be meant by 'AB': 'a b', 'a_b'"),
        ("A,a\n1,2\n", "*", "'A' and 'a' differ by case alone"),
        ('{"a": 1, "A": 2}\n', "*", r"a\.jsonl: The column `a` already exists"),
    ],
)
def test_columns_that_cannot_be_told_apart_are_refused(
    spark: SparkSession, tmp_path: Path, content: str, words: str, said: str
):
    path = tmp_path / ("a.jsonl" if content.startswith("{") else "a.csv")
    path.write_text(content)
    with pytest.raises(InvalidConfiguration, match=said):
        Found(spark, path, mapping_of(words))
    assert not (tmp_path / "out").exists()


def test_columns_that_differ_by_case_may_be_named(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.csv").write_text("A,a\n1,2\n")
    assert Found(spark, tmp_path / "a.csv", mapping_of("x=A,y=a")).rows == [(1, 2)]


def test_attributes_that_differ_by_case_alone_are_refused():
    with pytest.raises(InvalidConfiguration, match="'x' and 'X' differ by case alone"):
        mapping_of("x=a,X=b")


def test_a_column_without_a_name_keeps_its_values(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.csv").write_text(", b ,\n7,x,true\n8,y,false\n")
    found = Found(spark, tmp_path / "a.csv", mapping_of("*"))
    assert found.kinds == {"_c0": "integer", "b": "text", "_c2": "boolean"}
    assert found.rows == [(7, "x", True), (8, "y", False)]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_whole_numbers_stay_exact_where_one_of_them_is_past_64_bits(
    spark: SparkSession, tmp_path: Path, name: str
):
    exact, long = 12_345_678_901_234_567, 2**63
    if name.endswith("parquet"):
        numbers = pa.array(map(Decimal, (exact, long)), pa.decimal128(38, 0))
        pq.write_table(pa.table({"id": numbers}), tmp_path / name)
    else:
        text = f"id\n{exact}\n{long}\n" if name == "a.csv" else f'{{"id":{exact}}}\n{{"id":{long}}}'
        (tmp_path / name).write_text(text)
    found = Found(spark, tmp_path / name, mapping_of("*"))
    assert (found.kinds, found.rows) == ({"id": "integer"}, [(exact,)])
    assert set(found.aside.values()) == {"id is not a number"}


def test_moments_that_have_no_nanoseconds_are_set_aside(spark: SparkSession, tmp_path: Path):
    pq.write_table(
        pa.table({"t": pa.array(MOMENTS, pa.timestamp("us", "UTC"))}), tmp_path / "a.parquet"
    )
    found = Found(spark, tmp_path / "a.parquet", mapping_of("*"))
    assert sorted(found.rows, reverse=True) == [(each,) for each in IN_TEXT]
    assert set(found.aside.values()) == {"t is not a time"}


def test_derived_values_that_have_no_room_are_set_aside_or_absent(
    spark: SparkSession, tmp_path: Path
):
    (tmp_path / "a.csv").write_text("n\n1\n99999999999\n")
    derived = "[attributes.n]\ntype = 'integer'\n[attributes.t]\nderive = 'timestamp_seconds(n)'\n"
    large = "[attributes.m]\ntype = 'integer'\nderive = 'n * 1e30'"
    found = Found(spark, tmp_path / "a.csv", parse_mapping(derived + large, "m.toml"))
    assert found.rows == [(1, "1970-01-01T00:00:01.000000Z", None)]
    assert found.aside == {3: "t is not a time"}


def test_a_packed_file_that_is_damaged_or_cut_off_is_named(spark: SparkSession, tmp_path: Path):
    whole = gzip.compress(b"a\n" + b"".join(b"%d\n" % (n * n) for n in range(20_000)))
    (tmp_path / "bad.csv.gz").write_bytes(whole[:10] + b"\xff" * 50 + whole[60:])
    with pytest.raises(InvalidConfiguration, match=r"cannot read .*bad\.csv\.gz"):
        first_line(tmp_path / "bad.csv.gz")
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-2_000])
    with pytest.raises(Exception, match="Unexpected end") as failure:
        Found(spark, tmp_path / "cut.csv.gz", mapping_of("a:number"))
    assert f"cannot read {tmp_path}/cut.csv.gz: Unexpected end" in sentence(failure.value)
    assert not (tmp_path / "out").exists()


def test_a_mapping_may_begin_with_the_mark_of_its_encoding(tmp_path: Path):
    (tmp_path / "m.toml").write_text("\ufeff[attributes.a]\n", encoding="utf-8")
    assert list(load_mapping(tmp_path / "m.toml").attributes) == ["a"]
