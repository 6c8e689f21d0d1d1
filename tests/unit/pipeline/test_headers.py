import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.headers import check_headers
from support.quotes import HEADER, write_lines

MISSING = "no column for open, high, low, close"


def refused(path: Path) -> str:
    with pytest.raises(InvalidConfiguration) as raised:
        check_headers([path])
    return str(raised.value)


def test_headers_that_name_all_columns_pass(tmp_path: Path):
    write_lines(tmp_path / "a.csv", HEADER)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(f"\ufeff{HEADER}\r\n".encode()))
    write_lines(tmp_path / "c.txt", "[symbol,'A'],[open,1]")
    names = HEADER.split(",")
    pq.write_table(pa.table({name: [1] for name in names}), tmp_path / "d.parquet")
    check_headers([tmp_path])
    check_headers([])


def test_missing_columns_are_named_in_every_kind_of_file(tmp_path: Path):
    text = "Date,Symbol,Volume\n2023-01-02,A,1\n"
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(text.encode()))
    table = pa.table({"date": ["x"], "volume": [1]})
    pq.write_table(table, tmp_path / "c.parquet")
    for name in ("a.csv", "b.txt.gz", "c.parquet"):
        assert f"{name}: {MISSING}" in refused(tmp_path / name)


def test_files_that_are_broken_or_empty_inside(tmp_path: Path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b""))
    assert "a.csv.gz is empty" in refused(tmp_path / "a.csv.gz")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(HEADER.encode() * 100)[:30])
    assert "cannot read" in refused(tmp_path / "b.csv.gz")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    assert "c.parquet is not a whole Parquet file" in refused(tmp_path / "c.parquet")
