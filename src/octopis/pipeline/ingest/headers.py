"""What files say of themselves, looked at before Spark starts: a typo then costs no seconds.

Spark reads the same lines again later, from wherever the files are then.
"""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.mapping import Mapping, quotes_mapping
from octopis.pipeline.ingest.reading import first_lines, is_padres
from octopis.pipeline.ingest.rules import rules_of
from octopis.pipeline.ingest.source_files import find_files, first_line, header_names, places_of


def check_headers(paths: list[Path], mapping: Mapping | None = None) -> None:
    """Raise InvalidConfiguration where files are missing, or lack columns that are asked for."""
    mapping = mapping or quotes_mapping()
    files = find_files(paths)
    if not mapping.is_typed:
        files.check_one_format()
    rules = rules_of(mapping, {}, ())
    for path, first in first_lines(files).items():
        if not is_padres(first):
            places_of(rules, header_names(first), str(path))
        elif not mapping.is_typed:
            raise InvalidConfiguration(f"{path} is PADRES text, which needs a mapping with types")
    for path in files.jsons:
        _check_json(path)
    for path in files.parquets:
        places_of(rules, _parquet_names(path), str(path))


def _check_json(path: Path) -> None:
    first = first_line(path).lstrip("\ufeff \t")
    try:
        is_object = isinstance(msgspec.json.decode(first), dict)
    except msgspec.DecodeError:
        is_object = first.startswith("{") and first != "{"  # a broken line is set aside later
    if not is_object:
        raise InvalidConfiguration(f"{path} does not have a JSON object in each line")


def _parquet_names(path: Path) -> list[str]:
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowInvalid) as failure:
        raise InvalidConfiguration(f"{path} is not a whole Parquet file") from failure
    return [name for field in schema for name in _names(field, "")]


def _names(field: pa.Field, above: str) -> list[str]:
    name = above + field.name
    if pa.types.is_struct(field.type):
        return [each for inner in field.type for each in _names(inner, f"{name}.")]
    return [name]
