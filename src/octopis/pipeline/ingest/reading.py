"""Raw rows of quote files: text in columns, each with its file and line, and nothing judged yet.

Lines are numbered by window functions over the places where Spark has read them, so that the
numbers are those of the file, however it was cut.
"""

from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.quote_files import QuoteFiles, header_columns, places_of
from octopis.pipeline.schemas import RAW_COLUMNS, literal_path, plain_path

_PADRES_LINE = r"^\s*(\[[^,\[\]]+,[^\[\]]*\]\s*,?\s*)+$"
_TEXT = T.StructType([T.StructField("value", T.StringType())])


def first_lines(spark: SparkSession, files: QuoteFiles) -> dict[str, str]:
    """Return the first line of every text file; a file that is empty inside has none."""
    if not files.texts:
        return {}
    firsts = read_lines(spark, files.texts).where(F.col("line") == 1).select("file", "text")
    found = {row["file"]: row["text"] for row in firsts.collect()}
    for path in files.texts:
        if str(path) not in found:
            raise InvalidConfiguration(f"{path} is empty")
    return dict(sorted(found.items()))


def read_rows(spark: SparkSession, files: QuoteFiles, firsts: dict[str, str]) -> DataFrame:
    """Return `file`, `line`, `text`, a quote's columns as text, and `fault` where cut wrong."""
    frames = [_parquet_rows(spark, path) for path in files.parquets]
    if files.texts:
        lines = read_lines(spark, files.texts)
        groups: dict[str, list[str]] = {}
        for file, first in firsts.items():
            groups.setdefault("[" if is_padres(first) else first, []).append(file)
        for header, names in groups.items():
            own = lines.where(F.col("file").isin(names)) if len(groups) > 1 else lines
            is_list = is_padres(header)
            frames.append(_padres_rows(own) if is_list else _csv_rows(own, header, names[0]))
    return reduce(DataFrame.unionByName, frames)


def count_rows(spark: SparkSession, files: QuoteFiles, firsts: dict[str, str]) -> int:
    """Count the rows straight from the files, apart from everything that happens to them later."""
    rows = -sum(not is_padres(first) for first in firsts.values())
    if files.texts:
        rows += spark.read.schema(_TEXT).text([literal_path(path) for path in files.texts]).count()
    return rows + sum(spark.read.parquet(literal_path(path)).count() for path in files.parquets)


def read_lines(spark: SparkSession, paths: tuple[Path, ...]) -> DataFrame:
    """Return every line of text files as `file`, `line` (from 1) and `text`."""
    blocks = (
        spark.read.schema(_TEXT)
        .text([literal_path(path) for path in paths])
        .select(
            plain_path(F.col("_metadata.file_path")).alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
            # Ascending within a block, which is all that is asked of it.
            F.monotonically_increasing_id().alias("place"),
            F.col("value").alias("text"),
        )
    )
    in_order = Window.partitionBy("file").orderBy("block", "place")
    return blocks.select(
        "file", F.row_number().over(in_order).cast("long").alias("line"), F.col("text")
    )


def is_padres(first: str) -> bool:
    """Tell by its first line whether a file is PADRES text, which has no header."""
    return first.lstrip("\ufeff \t").startswith("[")


def _csv_rows(lines: DataFrame, header: str, file: str) -> DataFrame:
    places, width = header_columns(header, file)
    schema = ", ".join(f"{name} STRING" for name in (*(f"c{at}" for at in range(width)), "corrupt"))
    options = {"columnNameOfCorruptRecord": "corrupt", "mode": "PERMISSIVE"}
    cut = lines.where(F.col("line") > 1).withColumn("cells", F.from_csv("text", schema, options))
    wrong = F.when(F.trim("text") == "", "the line is empty").when(
        F.col("cells.corrupt").isNotNull(), f"the line does not have {width} fields"
    )
    symbol = F.upper(F.regexp_extract("file", r"([^/.]+)[^/]*$", 1))
    return cut.select(
        "file",
        "line",
        "text",
        *(
            F.trim(F.col(f"cells.c{places[name]}")).alias(name)
            if name in places
            else symbol.alias(name)
            for name in RAW_COLUMNS
        ),
        wrong.alias("fault"),
    )


def _padres_rows(lines: DataFrame) -> DataFrame:
    def attribute(name: str) -> Column:
        found = F.regexp_extract("text", rf"(?i)\[\s*{name}\s*,\s*'?([^'\[\]]*?)'?\s*\]", 1)
        return F.nullif(F.trim(found), F.lit("")).alias(name)

    wrong = F.when(~F.col("text").rlike(_PADRES_LINE), "the line is not [name,value],...")
    return lines.select("file", "line", "text", *map(attribute, RAW_COLUMNS), wrong.alias("fault"))


def _parquet_rows(spark: SparkSession, path: Path) -> DataFrame:
    rows = spark.read.parquet(literal_path(path))  # a Parquet file states its schema itself
    places = places_of(rows.columns, str(path))
    symbol = F.lit(path.name.partition(".")[0].upper())
    for name in (rows.schema.fields[place] for place in places.values()):
        if isinstance(name.dataType, T.StructType | T.ArrayType | T.MapType | T.BinaryType):
            raise InvalidConfiguration(f"{path}: the column {name.name} is neither text nor number")
    values = {
        name: F.col(f"`{rows.columns[place]}`").cast("string") for name, place in places.items()
    }
    columns = [values.get(name, symbol).alias(name) for name in RAW_COLUMNS]
    return rows.select(
        F.lit(str(path)).alias("file"),
        (F.col("_metadata.row_index") + 1).alias("line"),
        F.concat_ws(",", *(values.get(name, symbol) for name in RAW_COLUMNS)).alias("text"),
        *columns,
        F.lit(None).cast("string").alias("fault"),
    )
