"""Rows of quote files, each judged by itself, with where it stands.

Spark cuts large files into blocks and reads them side by side, once. So a row only knows its file,
its block and its place, which rises within a block: `Tally` turns these into numbers of lines when
all rows have been seen, for the few of which anybody asks. A header is read as any other row.
"""

import gzip
import re
from collections.abc import Iterable, Mapping
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
from octopis.pipeline.ingest.cutting import CORRUPT, cut_lines
from octopis.pipeline.ingest.judging import JUDGED, WHERE, judge
from octopis.pipeline.ingest.quote_files import QuoteFiles, header_columns, places_of
from octopis.pipeline.schemas import RAW_COLUMNS, literal_path, plain_url

_PADRES_LINE = r"^\s*(\[[^,\[\]]+,[^\[\]]*\]\s*,?\s*)+$"
_TEXT = T.StructType([T.StructField("value", T.StringType())])
_HEADER_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Rows of some files; how many were read is known when they have been computed once."""

    frame: DataFrame
    """As JUDGED has them."""
    _seen: tuple[Observation, ...]
    _in_tables: int

    def count(self) -> int:
        """Return how many rows came off the disk, whatever happened to them later."""
        return self._in_tables + sum(int(each.get["rows"]) for each in self._seen)


def first_lines(files: QuoteFiles) -> dict[Path, str]:
    """Return the first line of every text file; raise InvalidConfiguration where there is none."""
    return {path: _first_line(path) for path in files.texts}


def _first_line(path: Path) -> str:
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace") as lines:
            line = lines.readline(_HEADER_MAX)
    except (OSError, EOFError) as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure}") from failure
    if not line:
        raise InvalidConfiguration(f"{path} is empty")
    return line.rstrip("\r\n")


def is_padres(first: str) -> bool:
    """Tell by its first line whether a file is PADRES text, which has no header."""
    return first.lstrip("\ufeff \t").startswith("[")


def read_rows(spark: SparkSession, files: QuoteFiles, firsts: Mapping[Path, str]) -> JudgedRows:
    """Return the rows of all files, headers among them."""
    numbers = {name: number for number, name in enumerate(files.names)}
    frames = [_parquet_rows(spark, path, numbers[str(path)]) for path in files.parquets]
    in_tables = sum(_table_rows(path) for path in files.parquets)
    groups: dict[str, list[Path]] = {}
    for path in files.texts:
        groups.setdefault("[" if is_padres(firsts[path]) else firsts[path], []).append(path)
    seen = []
    for header, paths in groups.items():
        observation = Observation()
        lines = read_lines(spark, paths, numbers, observation)
        is_list = is_padres(header)
        frames.append(_padres_rows(lines) if is_list else _csv_rows(lines, header, str(paths[0])))
        seen.append(observation)
    return JudgedRows(reduce(DataFrame.unionByName, frames), tuple(seen), in_tables)


def read_lines(
    spark: SparkSession, paths: Iterable[Path], numbers: Mapping[str, int], seen: Observation
) -> DataFrame:
    """Return every line of text files: `file`, `block`, `place`, `text`, and a `file_symbol`.

    How many `rows` there are is `seen` right where they come off the disk.
    """
    lines = spark.read.schema(_TEXT).text([literal_path(path) for path in paths])
    placed = lines.select(
        F.col("_metadata.file_path").alias("url"),
        F.col("_metadata.file_block_start").alias("block"),
        # Ascending within a block, without holes: that is all that is asked of it.
        F.monotonically_increasing_id().alias("place"),
        F.col("value").alias("text"),
    ).observe(seen, F.count("*").alias("rows"))
    urls = {url: plain_url(url) for url in lines.inputFiles()}
    if len(urls) == 1:
        (name,) = urls.values()
        known = [F.lit(numbers[name]).alias("file"), F.lit(_symbol(name)).alias("file_symbol")]
        return placed.select(*known, "block", "place", "text")
    # Spark spells addresses in one way here, and in another there.
    urls |= {re.sub(r"^file:/+", "file:/", url): name for url, name in urls.items()}
    files = pa.table(
        {
            "url": list(urls),
            "file": pa.array([numbers[name] for name in urls.values()], pa.int32()),
            "file_symbol": [_symbol(name) for name in urls.values()],
        }
    )
    return placed.join(F.broadcast(spark.createDataFrame(files)), "url", how="inner").drop("url")


def _symbol(name: str) -> str:
    return Path(name).name.partition(".")[0].upper()


def _csv_rows(lines: DataFrame, header: str, file: str) -> DataFrame:
    """Return judged rows. Spark cuts the lines with quotes, Arrow all others, which is quicker."""
    places, width = header_columns(header, file)
    schema = ", ".join(f"{name} STRING" for name in (*(f"c{at}" for at in range(width)), CORRUPT))
    options = {"columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE"}
    cells = F.when(F.contains("text", F.lit('"')), F.from_csv("text", schema, options))
    # No name of the file for every row where the rows have one themselves.
    symbol = F.lit(None).cast("string") if "symbol" in places else F.col("file_symbol")
    rows = lines.select(*WHERE, "text", symbol.alias("file_symbol"), cells.alias("cells"))
    cut = partial(cut_lines, places=places, width=width)
    return rows.mapInArrow(lambda batches: judge(cut(batches)), from_arrow_schema(JUDGED))


def _padres_rows(lines: DataFrame) -> DataFrame:
    def attribute(name: str) -> Column:
        found = F.regexp_extract("text", rf"(?i)\[\s*{name}\s*,\s*'?([^'\[\]]*?)'?\s*\]", 1)
        return F.nullif(F.trim(found), F.lit("")).alias(name)

    wrong = F.when(~F.col("text").rlike(_PADRES_LINE), "the line is not [name,value],...")
    return lines.select(
        *WHERE, "text", *map(attribute, RAW_COLUMNS), wrong.alias("fault")
    ).mapInArrow(judge, from_arrow_schema(JUDGED))


def _parquet_rows(spark: SparkSession, path: Path, number: int) -> DataFrame:
    rows = spark.read.parquet(literal_path(path))  # a Parquet file states its schema itself
    places = places_of(rows.columns, str(path))
    for name in (rows.schema.fields[place] for place in places.values()):
        if isinstance(name.dataType, T.StructType | T.ArrayType | T.MapType | T.BinaryType):
            raise InvalidConfiguration(f"{path}: the column {name.name} is neither text nor number")
    values = {
        name: F.col(f"`{rows.columns[place]}`").cast("string") for name, place in places.items()
    }
    columns = [values.get(name, F.lit(_symbol(path.name))).alias(name) for name in RAW_COLUMNS]
    return rows.select(
        F.lit(number).alias("file"),
        F.lit(0).cast("long").alias("block"),
        F.col("_metadata.row_index").alias("place"),
        F.concat_ws(",", *columns).alias("text"),
        *columns,
        F.lit(None).cast("string").alias("fault"),
    ).mapInArrow(judge, from_arrow_schema(JUDGED))


def _table_rows(path: Path) -> int:
    with pq.ParquetFile(path) as file:
        return int(file.metadata.num_rows)
