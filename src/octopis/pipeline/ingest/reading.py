"""Rows of files and tables, each judged by itself, with where it stands.

Spark cuts large files into blocks and reads them side by side, once. So a row only knows its file,
its block and its place, which rises within a block: `Tally` turns these into numbers of lines when
all rows have been seen, for the few of which anybody asks. A header is read as any other row.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.cutting import CELLS, CORRUPT, STEM, cut_lines, open_objects
from octopis.pipeline.ingest.deriving import kind_of
from octopis.pipeline.ingest.inferring import Field, Shape, fields_of
from octopis.pipeline.ingest.judging import FAULT, TEXT, WHERE, Batches, judge, judged_schema
from octopis.pipeline.ingest.mapping import OURS, Kind
from octopis.pipeline.ingest.rules import Rule, Rules
from octopis.pipeline.ingest.source_files import SourceFiles, first_line, header_names, places_of
from octopis.pipeline.schemas import literal_path, plain_url, quoted

_PADRES_LINE = r"^\s*(\[[^,\[\]]+,[^\[\]]*\]\s*,?\s*)+$"
_TEXT = T.StructType([T.StructField("value", T.StringType())])
_URL = OURS + "url"
FILE, BLOCK, PLACE = WHERE


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are read alike, as they come off the disk, and how they are judged."""

    frame: DataFrame
    judged: Callable[[Batches], Batches]


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of some files; how many were read is known when they have been computed once."""

    groups: tuple[Group, ...]
    rules: Rules
    _seen: tuple[Observation, ...]

    @property
    def texts(self) -> DataFrame:
        """Where each row stands, and its text; the same rows, read again."""
        return reduce(
            DataFrame.unionByName, (each.frame.select(*WHERE, TEXT) for each in self.groups)
        )

    @property
    def frame(self) -> DataFrame:
        """The judged rows."""
        schema = from_arrow_schema(judged_schema(self.rules))
        frames = [each.frame.mapInArrow(each.judged, schema) for each in self.groups]
        return reduce(DataFrame.unionByName, frames)

    def count(self) -> int:
        """Return how many rows came off the disk, whatever happened to them later."""
        return sum(int(each.get["rows"]) for each in self._seen)


def first_lines(files: SourceFiles) -> dict[Path, str]:
    """Return the first line of every text file; raise InvalidConfiguration where there is none."""
    return {path: first_line(path) for path in files.texts}


def is_padres(first: str) -> bool:
    """Tell by its first line whether a file is PADRES text, which has no header."""
    return first.lstrip("\ufeff \t").startswith("[")


def read_rows(
    spark: SparkSession, files: SourceFiles, firsts: Mapping[Path, str], shape: Shape
) -> SourceRows:
    """Return the rows of all files, headers among them."""
    rules = shape.rules
    numbers = {name: number for number, name in enumerate(files.names)}
    alike: dict[str, list[Path]] = {}
    for path in files.texts:
        alike.setdefault("[" if is_padres(firsts[path]) else firsts[path], []).append(path)
    groups: list[Group] = []
    seen: list[Observation] = []
    for header, paths in alike.items():
        lines = read_lines(spark, paths, numbers, _new(seen))
        if is_padres(header):
            groups.append(_padres_rows(lines, rules))
        else:
            groups.append(_csv_rows(lines, header, str(paths[0]), rules))
    if files.jsons:
        lines = read_lines(spark, files.jsons, numbers, _new(seen))
        groups.append(_json_rows(lines, shape.fields, str(files.jsons[0]), rules))
    same_columns: dict[str, list[Path]] = {}
    for path in files.parquets:
        same_columns.setdefault(str(pq.read_schema(path)), []).append(path)
    groups += [
        _parquet_rows(spark, paths, numbers, rules, _new(seen)) for paths in same_columns.values()
    ]
    return SourceRows(tuple(groups), rules, tuple(seen))


def read_table(frame: DataFrame, name: str, rules: Rules) -> SourceRows:
    """Return the rows of a frame. They have no lines: the place only tells them apart."""
    seen = Observation()
    where = [
        F.lit(0).alias(FILE),
        F.lit(_stem(name)).alias(STEM),
        F.monotonically_increasing_id().alias(PLACE),
    ]
    cells = _counted(seen, frame.select(*where, *_typed_cells(frame, rules, name)))
    return SourceRows((_typed_group(cells, rules, keeps_text=True),), rules, (seen,))


def _new(seen: list[Observation]) -> Observation:
    seen.append(Observation())
    return seen[-1]


def _counted(seen: Observation, frame: DataFrame) -> DataFrame:
    return frame.observe(seen, F.count("*").alias("rows"))


def read_lines(
    spark: SparkSession, paths: Iterable[Path], numbers: Mapping[str, int], seen: Observation
) -> DataFrame:
    """Return every line of text files: WHERE it stands, TEXT, and the STEM of its file's name.

    How many `rows` there are is `seen` right where they come off the disk.
    """
    lines = spark.read.schema(_TEXT).text([literal_path(path) for path in paths])
    placed = _counted(
        seen,
        lines.select(
            F.col("_metadata.file_path").alias(_URL),
            F.col("_metadata.file_block_start").alias(BLOCK),
            # Ascending within a block, without holes: that is all that is asked of it.
            F.monotonically_increasing_id().alias(PLACE),
            F.col("value").alias(TEXT),
        ),
    )
    return _with_files(spark, placed, lines.inputFiles(), numbers)


def _with_files(
    spark: SparkSession, placed: DataFrame, inputs: Iterable[str], numbers: Mapping[str, int]
) -> DataFrame:
    """Put the number of the file, and the STEM of its name, in the place of its address."""
    urls = {url: plain_url(url) for url in inputs}
    others = [F.col(quoted(name)) for name in placed.columns if name != _URL]
    if len(urls) == 1:
        (name,) = urls.values()
        known = [F.lit(numbers[name]).alias(FILE), F.lit(_stem(name)).alias(STEM)]
        return placed.select(*known, *others)
    # Spark spells addresses in one way here, and in another there.
    urls |= {re.sub(r"^file:/+", "file:/", url): name for url, name in urls.items()}
    files = pa.table(
        {
            _URL: list(urls),
            FILE: pa.array([numbers[name] for name in urls.values()], pa.int32()),
            STEM: [_stem(name) for name in urls.values()],
        }
    )
    return placed.join(F.broadcast(spark.createDataFrame(files)), _URL, how="inner").drop(_URL)


def _stem(name: str) -> str:
    return Path(name).name.partition(".")[0].upper()


def _csv_rows(lines: DataFrame, header: str, file: str, rules: Rules) -> Group:
    """Return rows of CSV."""
    names = header_names(header)
    places = places_of(rules, names, file)
    # No name of the file for every row where the rows have one themselves.
    needs_stem = any(rule.said.from_file and rule.name not in places for rule in rules.read)
    stem = F.col(STEM) if needs_stem else F.lit(None).cast("string")
    rows = lines.select(*WHERE, TEXT, stem.alias(STEM))
    cut = partial(cut_lines, rules=rules, places=places, width=len(names))
    return Group(rows, lambda batches: judge(cut(batches), rules))


def _padres_rows(lines: DataFrame, rules: Rules) -> Group:
    def attribute(rule: Rule) -> Column:
        names = "|".join(map(re.escape, rule.columns))
        found = F.regexp_extract(TEXT, rf"(?i)\[\s*(?:{names})\s*,\s*'?([^'\[\]]*?)'?\s*\]", 1)
        return F.nullif(F.trim(found), F.lit("")).alias(rule.name)

    wrong = F.when(~F.col(TEXT).rlike(_PADRES_LINE), "the line is not [name,value],...")
    rows = lines.select(*WHERE, TEXT, *map(attribute, rules.read), wrong.alias(FAULT))
    return Group(rows, lambda batches: judge(batches, rules))


def _json_rows(lines: DataFrame, fields: list[Field], file: str, rules: Rules) -> Group:
    """Return rows of JSON lines. Every value is read as text first, and judged like any other."""
    places = places_of(rules, [field.name for field in fields], file)
    paths = {name: fields[place].path for name, place in places.items()}
    schema = _nested([*paths.values(), (CORRUPT,)])
    options = {"columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE"}
    cells = F.from_json(TEXT, schema, options)
    rows = lines.select(*WHERE, TEXT, STEM, cells.alias(CELLS))
    opened = partial(open_objects, rules=rules, paths=paths)
    return Group(rows, lambda batches: judge(opened(batches), rules))


def _nested(paths: Iterable[tuple[str, ...]]) -> T.StructType:
    """Return a schema of texts within fields."""
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in paths:
        below.setdefault(first, []).append(tuple(rest))
    return T.StructType(
        [
            T.StructField(name, T.StringType() if rests == [()] else _nested(rests))
            for name, rests in below.items()
        ]
    )


def _parquet_rows(
    spark: SparkSession,
    paths: list[Path],
    numbers: Mapping[str, int],
    rules: Rules,
    seen: Observation,
) -> Group:
    """Return rows of Parquet files that have the same columns."""
    frame = spark.read.parquet(*map(literal_path, paths))  # the files state their schema
    where = [F.col("_metadata.file_path").alias(_URL), F.col("_metadata.row_index").alias(PLACE)]
    cells = _counted(seen, frame.select(*where, *_typed_cells(frame, rules, str(paths[0]))))
    return _typed_group(_with_files(spark, cells, frame.inputFiles(), numbers), rules)


def _typed_cells(frame: DataFrame, rules: Rules, name: str) -> list[Column]:
    """Return the columns of a table that has types of its own, by attribute."""
    fields = list(fields_of(frame.schema))
    places = places_of(rules, [field.name for field in fields], name)
    return [
        _typed_cell(rule, fields[places[rule.name]], name).alias(rule.name)
        for rule in rules.read
        if rule.name in places
    ]


def _typed_group(cells: DataFrame, rules: Rules, *, keeps_text: bool = False) -> Group:
    nothing = F.lit(None).cast("string")
    values = [
        F.col(quoted(rule.name))
        if rule.name in cells.columns
        else (F.col(STEM) if rule.said.from_file else nothing).alias(rule.name)
        for rule in rules.read
    ]
    rows = cells.select(
        FILE,
        F.lit(0).cast("long").alias(BLOCK),
        PLACE,
        F.concat_ws(",", *(value.cast("string") for value in values)).alias(TEXT),
        *values,
        F.lit(None).cast("string").alias(FAULT),
    )
    return Group(rows, lambda batches: judge(batches, rules, keeps_text=keeps_text))


def _typed_cell(rule: Rule, field: Field, name: str) -> Column:
    """Return a column as it is where Arrow can judge it so, or else as text."""
    kind = kind_of(field.type)
    if kind is None:
        raise InvalidConfiguration(f"{name}: the column {field.name} is neither text nor number")
    value = F.col(field.column)
    if isinstance(field.type, T.DecimalType):
        return value.cast("string" if rule.kind is Kind.INTEGER else "double")
    if rule.kind is kind or {rule.kind, kind} <= {Kind.NUMBER, Kind.INTEGER}:
        return value.cast("string") if kind is Kind.DATE else value
    return value.cast("string")
