import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from octopis.pipeline.ingest.quote_files import find_files
from octopis.pipeline.ingest.reading import count_rows, first_lines, read_lines, read_rows
from support.quotes import HEADER, csv_rows, padres_line, write_lines


def rows_of(spark: SparkSession, *paths: Path) -> list[dict[str, str]]:
    files = find_files(list(paths))
    firsts = first_lines(spark, files)
    rows = read_rows(spark, files, firsts).orderBy("file", "line").collect()
    assert count_rows(spark, files, firsts) == len(rows)
    return [row.asDict() for row in rows]


def test_lines_have_the_numbers_of_the_file_however_it_is_cut(spark: SparkSession, tmp_path: Path):
    path = write_lines(tmp_path / "a +[b]%.csv", *(f"line {number}" for number in range(1, 2001)))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "3000")
    try:
        lines = read_lines(spark, (path,))
        assert lines.rdd.getNumPartitions() > 1
        found = [(row["file"], row["line"], row["text"]) for row in lines.collect()]
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    wanted = [(str(path), number, f"line {number}") for number in range(1, 2001)]
    assert sorted(found) == sorted(wanted)


def test_all_kinds_of_files_give_the_same_rows(spark: SparkSession, tmp_path: Path):
    rows = csv_rows(symbols=2, days=2)
    write_lines(tmp_path / "plain.csv", HEADER, *rows)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress("\n".join([HEADER, *rows]).encode()))
    write_lines(tmp_path / "padres.txt", *map(padres_line, rows))
    columns = list(zip(*(row.split(",") for row in rows), strict=True))
    pq.write_table(
        pa.table(dict(zip(HEADER.split(","), map(list, columns), strict=True))),
        tmp_path / "table.parquet",
    )
    found = rows_of(spark, tmp_path)
    by_file: dict[str, list[tuple[str, ...]]] = {}
    for row in found:
        assert row["fault"] is None
        cells = tuple(row[name.lower()] for name in HEADER.split(","))
        by_file.setdefault(Path(row["file"]).name, []).append(cells)
    assert set(by_file) == {"plain.csv", "packed.csv.gz", "padres.txt", "table.parquet"}
    assert all(cells == [tuple(row.split(",")) for row in rows] for cells in by_file.values())
    lines = {Path(row["file"]).name: row["line"] for row in reversed(found)}
    assert lines == {"plain.csv": 2, "packed.csv.gz": 2, "padres.txt": 1, "table.parquet": 1}


def test_lines_of_the_wrong_shape_say_so(spark: SparkSession, tmp_path: Path):
    sound = csv_rows(symbols=1, days=1)[0]
    write_lines(tmp_path / "a.csv", HEADER, "1,2,3", f"{sound},9", "", sound, '"open quote')
    write_lines(tmp_path / "b.txt", padres_line(sound), "[symbol,'A'", "hello")
    faults = [row["fault"] for row in rows_of(spark, tmp_path)]
    csv_fault, padres_fault = "the line does not have 7 fields", "the line is not [name,value],..."
    empty = "the line is empty"
    assert faults == [csv_fault, csv_fault, empty, None, csv_fault, None, *[padres_fault] * 2]


def test_symbol_comes_from_the_file_where_the_header_has_none(spark: SparkSession, tmp_path: Path):
    write_lines(tmp_path / "aapl.us.csv", "Date,Open,High,Low,Close,Volume", "2023-01-02,1,1,1,1,1")
    assert [row["symbol"] for row in rows_of(spark, tmp_path)] == ["AAPL"]
