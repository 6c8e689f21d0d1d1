"""Traces on disk: is one there, is it whole, and its tables as DataFrames."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from octopis.errors import InvalidConfiguration
from octopis.pipeline.schemas import spark_schema
from octopis.trace import Level, RunSummary, read_summary
from octopis.trace.schemas import SCHEMAS


def check_table(folder: Path, table: str) -> Path:
    """Return where a table of a trace is, or raise InvalidConfiguration where it is not whole."""
    summary = read_summary(folder)
    path = folder / f"{table}.parquet"
    if table not in Level(summary.level).tables:
        raise InvalidConfiguration(
            f"{folder} has no table of {table}: it was written at level {summary.level}"
        )
    rows = _count(path)
    if table == "deliveries" and rows != summary.deliveries:
        raise InvalidConfiguration(
            f"{path} holds {rows} of the {summary.deliveries} deliveries of its run: "
            "it is not the file that the run wrote"
        )
    return path


def read_trace(spark: SparkSession, folder: Path, table: str) -> DataFrame:
    """Return a table of a trace, with the schema that every trace has."""
    path = check_table(folder, table)
    return spark.read.schema(spark_schema(SCHEMAS[table])).parquet(f"{path.absolute()}")


def open_trace(folder: Path) -> RunSummary:
    """Return the summary of a trace whose tables are all whole, or raise InvalidConfiguration."""
    summary = read_summary(folder)
    for table in Level(summary.level).tables:
        check_table(folder, table)
    return summary


def _count(path: Path) -> int:
    try:
        with pq.ParquetFile(path) as file:
            return int(file.metadata.num_rows)
    except FileNotFoundError as failure:
        raise InvalidConfiguration(f"there is no {path}: the trace is not whole") from failure
    except (OSError, pa.ArrowInvalid) as failure:
        hint = "was it cut off? run the scenario again"
        raise InvalidConfiguration(f"{path} is not a whole Parquet file: {hint}") from failure
