"""The files that rows are read from: their formats, and what their headers say."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.mapping import QUOTES
from octopis.pipeline.ingest.rules import Rule, Rules

TEXT_ENDINGS = (".csv", ".csv.gz", ".txt", ".txt.gz")
JSON_ENDINGS = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".json", ".json.gz")
PARQUET_ENDING = ".parquet"
_KNOWN = (*TEXT_ENDINGS, *JSON_ENDINGS, PARQUET_ENDING)
_ENDINGS = ", ".join(_KNOWN)
_HEADER_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files to read, by how they are read."""

    texts: tuple[Path, ...]
    """CSV and PADRES text."""
    jsons: tuple[Path, ...]
    """One JSON object in each line."""
    parquets: tuple[Path, ...]

    @property
    def names(self) -> list[str]:
        """All of them by name, in order: of repeated rows the first stays."""
        return sorted(map(str, (*self.texts, *self.jsons, *self.parquets)))

    def check_one_format(self) -> None:
        """Raise InvalidConfiguration for files of several formats: each tells types its own way."""
        kinds = [files[0] for files in (self.texts, self.jsons, self.parquets) if files]
        if len(kinds) > 1:
            raise InvalidConfiguration(
                f"{kinds[0].name} and {kinds[1].name} are of different formats: ingest them one "
                "after the other, or say all types in a mapping"
            )


def find_files(paths: list[Path]) -> SourceFiles:
    """Return the files that `paths` name, or that folders among them hold.

    Raises InvalidConfiguration for a path that is not there, a folder without any such file, and
    a file whose first bytes are not of the kind that its name says.
    """
    found = [file.absolute() for path in paths for file in _expand(path)]
    for file in found:
        _check_kind(file)
    for file in found:
        if found.count(file) > 1:
            raise InvalidConfiguration(f"{file} is given twice: name it once")

    def ending(*endings: str) -> tuple[Path, ...]:
        return tuple(file for file in found if file.name.endswith(endings))

    return SourceFiles(ending(*TEXT_ENDINGS), ending(*JSON_ENDINGS), ending(PARQUET_ENDING))


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
    return file.name.endswith(_KNOWN) and file.name[0] not in "_."


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


def first_line(path: Path) -> str:
    """Return the first line of a file, plain or packed, or raise InvalidConfiguration."""
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace") as lines:
            line = lines.readline(_HEADER_MAX)
    except (OSError, EOFError, zlib.error) as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure}") from failure
    if not line:
        raise InvalidConfiguration(f"{path} is empty")
    return line.rstrip("\r\n")


def header_names(header: str) -> list[str]:
    """Return the columns that a CSV header names; one without a name is called as Spark does."""
    names = next(csv.reader([header.lstrip("\ufeff")]), [])
    return [name.strip() or f"_c{place}" for place, name in enumerate(names)]


def places_of(rules: Rules, names: Sequence[str], file: str) -> dict[str, int]:
    """Return where each attribute's column stands among `names`.

    One that may come from the file's name, or is optional, may be missing; for any other that is
    missing InvalidConfiguration is raised, as for one that stands there twice.
    """
    plain = [plain_name(name) for name in names]
    found = {rule.name: _place(rule, names, plain, file) for rule in rules.read}
    missing = [
        rule.columns[0]
        for rule in rules.read
        if found[rule.name] is None and not (rule.said.from_file or rule.is_optional)
    ]
    if missing:
        shown = ", ".join(names)[:80]
        hint = did_you_mean(missing[0], names)
        if rules.mapping.name == QUOTES:
            hint += "; for other data than quotes say --attributes or --mapping"
        raise InvalidConfiguration(
            f"{file}: no column for {', '.join(missing)}: it has {shown}{hint}"
        )
    return {name: place for name, place in found.items() if place is not None}


def _place(rule: Rule, names: Sequence[str], plain: Sequence[str], file: str) -> int | None:
    for wanted, among in _spellings(rule.columns, names, plain):
        places = [place for place, name in enumerate(among) if name == wanted]
        if len(places) > 1:
            those = ", ".join(repr(names[place]) for place in places)
            raise InvalidConfiguration(
                f"{file}: {len(places)} columns may be meant by {rule.columns[0]!r}: {those}; give "
                "each a name of its own"
            )
        if places:
            return places[0]
    return None


def _spellings(
    columns: Iterable[str], names: Sequence[str], plain: Sequence[str]
) -> Iterable[tuple[str, Sequence[str]]]:
    for column in columns:
        yield column, names
        yield plain_name(column), plain


def plain_name(name: str) -> str:
    """Return a column's name without what spellings differ by."""
    return re.sub(r"[\s_.\-]", "", name).lower()
