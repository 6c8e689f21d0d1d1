import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Observation, SparkSession

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.cutting import OPEN_QUOTE
from octopis.pipeline.ingest.inferring import Shape
from octopis.pipeline.ingest.judging import REASON, WHERE
from octopis.pipeline.ingest.lines import Tally
from octopis.pipeline.ingest.mapping import quotes_mapping
from octopis.pipeline.ingest.reading import first_lines, is_padres, read_lines, read_rows
from octopis.pipeline.ingest.rules import Rules, typed_rules
from octopis.pipeline.ingest.settling import settled, spread
from octopis.pipeline.ingest.source_files import SourceFiles, find_files
from support.quotes import HEADER, csv_rows, padres_line, write_lines

RULES = typed_rules(quotes_mapping())
QUOTES = Shape(RULES, [])


def rows_of(spark: SparkSession, *paths: Path) -> list[dict[str, str]]:
    """Return the rows of files in order, by names of files and without headers."""
    files = find_files(list(paths))
    firsts = first_lines(files)
    raw = read_rows(spark, files, firsts, QUOTES)
    rows = [row.asDict() for row in raw.frame.orderBy(*WHERE).collect()]
    assert raw.count() == len(rows)
    for row in rows:
        row["file"] = files.names[row[WHERE[0]]]
    headers = {str(path) for path, first in firsts.items() if not is_padres(first)}
    seen: set[str] = set()
    found = []
    for row in rows:
        if row["file"] in seen or row["file"] not in headers:
            found.append(row)
        seen.add(row["file"])
    return found


def quarantined(spark: SparkSession, files: SourceFiles) -> list[tuple[str, int, str]]:
    rows = spread(read_rows(spark, files, first_lines(files), QUOTES).frame, RULES.key).toArrow()
    without_derived = Rules(RULES.mapping, RULES.read)
    parts = zip(*settled(iter(rows.combine_chunks().to_batches()), without_derived), strict=True)
    _, aside, counts = (pa.Table.from_batches(part) for part in parts)
    tally = Tally(counts.to_pylist(), files.names)
    placed = tally.quarantined(spark, spark.createDataFrame(aside))
    return sorted((row["file"], row["line"], row["text"]) for row in placed.collect())


def test_lines_have_the_numbers_of_the_file_however_it_is_cut(spark: SparkSession, tmp_path: Path):
    texts = [f"line {number}" for number in range(2, 2001)]
    names = ("a +[b]%.csv", "c.csv", "d.csv.gz")
    for name in names[:2]:
        write_lines(tmp_path / name, HEADER, *texts)
    (tmp_path / names[2]).write_bytes(gzip.compress("\n".join([HEADER, *texts]).encode()))
    files = find_files([tmp_path])
    spark.conf.set("spark.sql.files.maxPartitionBytes", "9000")
    try:
        numbers = {name: number for number, name in enumerate(files.names)}
        lines = read_lines(spark, files.texts, numbers, Observation())
        assert lines.rdd.getNumPartitions() > 4
        found = quarantined(spark, files)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert found == [
        (str(tmp_path / name), number, f"line {number}")
        for name in names
        for number in range(2, 2001)
    ]


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0)])
def test_file_without_a_line_is_named(tmp_path: Path, content: bytes):
    path = tmp_path / ("a.csv.gz" if content else "a.csv")
    path.write_bytes(content)
    with pytest.raises(InvalidConfiguration, match="is empty"):
        first_lines(SourceFiles((path,), (), ()))


def test_packed_file_that_is_cut_off_is_named(tmp_path: Path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"x" * 1000)[:15])
    with pytest.raises(InvalidConfiguration, match=r"cannot read .*a\.csv\.gz"):
        first_lines(SourceFiles((path,), (), ()))


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
        assert row[REASON] is None
        cells = tuple(str(row[name.lower()]) for name in HEADER.split(","))
        by_file.setdefault(Path(row["file"]).name, []).append(cells)
    assert set(by_file) == {"plain.csv", "packed.csv.gz", "padres.txt", "table.parquet"}
    assert all(cells == [tuple(row.split(",")) for row in rows] for cells in by_file.values())


def test_lines_of_the_wrong_shape_say_so(spark: SparkSession, tmp_path: Path):
    sound = csv_rows(symbols=1, days=1)[0]
    write_lines(tmp_path / "a.csv", HEADER, "1,2,3", f"{sound},9", "", sound, '"open quote')
    write_lines(tmp_path / "b.txt", padres_line(sound), "[symbol,'A'", "hello")
    faults = [row[REASON] for row in rows_of(spark, tmp_path)]
    csv_fault, padres_fault = "the line does not have 7 fields", "the line is not [name,value],..."
    empty = "the line is empty"
    assert faults == [csv_fault, csv_fault, empty, None, OPEN_QUOTE, None, *[padres_fault] * 2]


def test_symbol_comes_from_the_file_where_the_header_has_none(spark: SparkSession, tmp_path: Path):
    write_lines(tmp_path / "aapl.us.csv", "Date,Open,High,Low,Close,Volume", "2023-01-02,1,1,1,1,1")
    assert [row["symbol"] for row in rows_of(spark, tmp_path)] == ["AAPL"]


def test_quotes_around_cells_are_left_out(spark: SparkSession, tmp_path: Path):
    rows = [
        '"2023-01-02","A,B",1,"1",1,1,1',
        '"2023-01-02,A,1,1,1,1,1',
        ' 2023-01-03 ,"A",1,1,1,1, 1',
        '2023-01-04,"A ""x""",1,1,1,1,1',
        '2023-01-04,"A"B,1,1,1,1,1',
        '"2023-01-04",A,1,1,1,1,1,1',
    ]
    write_lines(tmp_path / "a.csv", HEADER, *rows)
    found = [(row[REASON], row["symbol"], row["volume"]) for row in rows_of(spark, tmp_path)]
    wrong = "the line does not have 7 fields"
    assert found == [
        (None, "A,B", 1),
        (OPEN_QUOTE, None, None),
        (None, "A", 1),
        (None, 'A "x"', 1),
        (wrong, None, None),
        (wrong, None, None),
    ]
