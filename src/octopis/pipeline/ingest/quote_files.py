"""The files that quotes are read from: their kinds, and what their headers say."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from octopis.errors import InvalidConfiguration
from octopis.pipeline.schemas import PRICES

TEXT_ENDINGS = (".csv", ".csv.gz", ".txt", ".txt.gz")
PARQUET_ENDING = ".parquet"
_ENDINGS = ", ".join((*TEXT_ENDINGS, PARQUET_ENDING))

_SPELLINGS = {
    "date": ("date", "day", "tradedate", "datetime", "timestamp"),
    "symbol": ("symbol", "ticker", "name"),
    **{name: (name,) for name in PRICES},
    "close": ("close", "adjclose"),
    "volume": ("volume", "vol"),
}
"""What a column may be called, without spaces and in lower case; the first that is there wins."""


@dataclass(frozen=True, slots=True)
class QuoteFiles:
    """The files to read, by how they are read."""

    texts: tuple[Path, ...]
    parquets: tuple[Path, ...]

    @property
    def names(self) -> list[str]:
        """All of them by name, in order: of repeated rows the first stays."""
        return sorted(map(str, (*self.texts, *self.parquets)))


def find_files(paths: list[Path]) -> QuoteFiles:
    """Return the files that `paths` name, or that folders among them hold.

    Raises InvalidConfiguration for a path that is not there, a folder without any such file, and
    a file whose first bytes are not of the kind that its name says.
    """
    found = [file.absolute() for path in paths for file in _expand(path)]
    for file in found:
        _check_kind(file)
    parquets = tuple(file for file in found if file.name.endswith(PARQUET_ENDING))
    texts = tuple(file for file in found if not file.name.endswith(PARQUET_ENDING))
    for files in (texts, parquets):
        for file in files:
            if files.count(file) > 1:
                raise InvalidConfiguration(f"{file} is given twice: name it once")
    return QuoteFiles(texts, parquets)


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and _is_wanted(file))
        if not files:
            raise InvalidConfiguration(f"{path} holds no file that ends in {_ENDINGS}")
        return files
    if not path.is_file():
        raise InvalidConfiguration(f"there is no {path}")
    if path.name.startswith(("_", ".")):
        raise InvalidConfiguration(f"{path}: Spark passes over such names: rename the file")
    if not _is_wanted(path):
        raise InvalidConfiguration(f"{path} must end in one of {_ENDINGS}")
    return [path]


def _is_wanted(file: Path) -> bool:
    return file.name.endswith((*TEXT_ENDINGS, PARQUET_ENDING)) and file.name[0] not in "_."


def _check_kind(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            start = opened.read(4096)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {file}: {failure.strerror}") from failure
    if not start:
        raise InvalidConfiguration(f"{file} is empty")
    if file.name.endswith(PARQUET_ENDING):
        if not start.startswith(b"PAR1"):
            raise InvalidConfiguration(f"{file} is not a Parquet file, whatever its name says")
    elif file.name.endswith(".gz"):
        if not start.startswith(b"\x1f\x8b"):
            raise InvalidConfiguration(f"{file} is not compressed by gzip, whatever its name says")
    elif b"\0" in start or start.startswith((b"PAR1", b"\x1f\x8b")):
        raise InvalidConfiguration(f"{file} is not a text file, whatever its name says")


def header_columns(header: str, file: str) -> tuple[dict[str, int], int]:
    """Return where a CSV header has each column of a quote, and how many columns it has.

    A file without symbols is taken for one symbol's, named by the file. Raises
    InvalidConfiguration where dates, prices or volumes are missing.
    """
    names = next(csv.reader([header.lstrip("\ufeff")]), [])
    return places_of(names, file), len(names)


def places_of(names: list[str], file: str) -> dict[str, int]:
    """Return where each column of a quote stands among `names`; the symbol may be missing."""
    plain = [re.sub(r"[\s_.\-]", "", name).lower() for name in names]
    places = {
        column: plain.index(spelling)
        for column, spellings in _SPELLINGS.items()
        for spelling in reversed(spellings)
        if spelling in plain
    }
    missing = [column for column in _SPELLINGS if column not in places and column != "symbol"]
    if missing:
        shown = ", ".join(names)[:80]
        raise InvalidConfiguration(
            f"{file}: no column for {', '.join(missing)} in its header ({shown})"
        )
    return places
