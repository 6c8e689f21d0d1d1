from pathlib import Path

import pytest

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.mapping import quotes_mapping
from octopis.pipeline.ingest.rules import typed_rules
from octopis.pipeline.ingest.source_files import find_files, header_names, places_of

RULES = typed_rules(quotes_mapping())


def test_files_are_found_by_name_and_in_folders(tmp_path: Path):
    for name in ("a.csv", "b.txt", "_c.csv", "d.jsonl", "e.json", "f.xml"):
        (tmp_path / name).write_text("x\n", encoding="utf-8")
    (tmp_path / "g.parquet").write_bytes(b"PAR1....")
    found = find_files([tmp_path])
    assert [path.name for path in found.texts] == ["a.csv", "b.txt"]
    assert [path.name for path in found.jsons] == ["d.jsonl", "e.json"]
    assert [path.name for path in found.parquets] == ["g.parquet"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\x89PNG\r\n\0\0", "is not a text file"),
        ("a.csv", b"PAR1....", "is not a text file"),
        ("a.csv.gz", b"Date,Open", "is not compressed by gzip"),
        ("a.parquet", b"Date,Open", "is not a Parquet file"),
        ("a.xml", b"<a/>", r"must end in one of \.csv"),
        ("_a.csv", b"x", "rename the file"),
    ],
)
def test_wrong_kind_of_file_is_named(tmp_path: Path, name: str, content: bytes, message: str):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidConfiguration, match=message):
        find_files([tmp_path / name])


def test_path_that_is_not_there_or_given_twice_is_named(tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="there is no"):
        find_files([tmp_path / "a.csv"])
    with pytest.raises(InvalidConfiguration, match="holds no file that ends in"):
        find_files([tmp_path])
    (tmp_path / "a.csv").write_text("x", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="is given twice"):
        find_files([tmp_path, tmp_path / "a.csv"])


@pytest.mark.parametrize(
    ("header", "places"),
    [
        ("Date,Symbol,Open,High,Low,Close,Volume", [0, 1, 2, 3, 4, 5, 6]),
        ("volume,CLOSE,low,HIGH,open,Ticker,date", [6, 5, 4, 3, 2, 1, 0]),
        ('\ufeff"Date","Name","Open","High","Low","Close","Adj Close","Volume"',
         [0, 1, 2, 3, 4, 5, 7]),
        ("date, open, high, low, adj_close, volume, name, symbol", [0, 7, 1, 2, 3, 4, 5]),
    ],
)  # fmt: skip
def test_columns_are_found_in_the_usual_spellings(header: str, places: list[int]):
    found = places_of(RULES, header_names(header), "f.csv")
    names = ("date", "symbol", "open", "high", "low", "close", "volume")
    assert [found[name] for name in names] == places


def test_header_without_prices_is_named():
    with pytest.raises(InvalidConfiguration, match=r"f\.csv: no column for open, high, low"):
        places_of(RULES, header_names("Date,Symbol,Close,Volume"), "f.csv")


def test_symbol_may_be_missing():
    header = "Date,Open,High,Low,Close,Adj Close,Volume"
    places = places_of(RULES, header_names(header), "f.csv")
    assert "symbol" not in places
