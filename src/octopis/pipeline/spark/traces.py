"""Traces on disk as DataFrames: whole or refused, one or many, and as a Spark data source.

`spark.read.format("octopis.trace").load(DIR)` reads a table of a trace. Options: `table`
(deliveries, unless told) and `facts` (true, unless told): what the run's summary says of the
scenario comes along as columns, so that frames of several runs can be joined up.
"""

from collections.abc import Iterator, Sequence
from os.path import normpath
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration
from octopis.pipeline.schemas import literal_path, plain_path, spark_schema
from octopis.trace import Level, RunSummary, read_summary
from octopis.trace.schemas import SCHEMAS

SUMMARY_COLUMNS = (
    "scenario",
    "algorithm",
    "seed",
    "source",
    "state",
    "brokers",
    "subscriptions",
    "notifications",
    "deliveries",
    "deliveries_lost",
    "subscription_ims",
    "subscription_duplicates",
    "notification_ims",
    "sync_ims",
    "queue_length_max",
    "begin_ns",
    "end_ns",
)
"""What a run's summary counts exactly, whatever its level."""


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
    return _read(spark, [folder], table)


def _read(spark: SparkSession, folders: list[Path], table: str) -> DataFrame:
    paths = [literal_path(check_table(folder, table).absolute()) for folder in folders]
    return spark.read.schema(spark_schema(SCHEMAS[table])).parquet(*paths)


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


class Traces:
    """Traces that were opened, each whole and with a name of its own."""

    def __init__(self, spark: SparkSession, folders: list[Path]) -> None:
        self._spark = spark
        self.summaries: dict[str, RunSummary] = {}
        self._folders: dict[str, Path] = {}
        for folder in folders:
            name = Path(normpath(folder.absolute())).name
            if name in self._folders:
                raise InvalidConfiguration(
                    f"{self._folders[name]} and {folder} have the same name: rename one"
                )
            self.summaries[name] = open_trace(folder)
            self._folders[name] = folder

    def table(self, table: str) -> DataFrame | None:
        """Return a table of all runs that have it, with `run` in front; None if none has."""
        folders = [
            self._folders[run]
            for run, summary in self.summaries.items()
            if table in Level(summary.level).tables
        ]
        if not folders:
            return None
        # One scan for all: a union of a scan each would take longer to plan than to run.
        run = F.element_at(F.split(plain_path(F.col("_metadata.file_path")), "/"), -2)
        return _read(self._spark, folders, table).select(run.alias("run"), *SCHEMAS[table].names)

    def summary_frame(self) -> DataFrame:
        """Return one row of facts and counts for each run."""
        rows = [
            {"run": run, **{name: getattr(summary, name) for name in SUMMARY_COLUMNS}}
            for run, summary in self.summaries.items()
        ]
        return self._spark.createDataFrame(pa.Table.from_pylist(rows))


FACTS = pa.schema(
    [
        ("run", pa.string()),
        ("scenario", pa.string()),
        ("algorithm", pa.string()),
        ("seed", pa.int64()),
        ("run_source", pa.string()),
        ("state", pa.string()),
        ("begin_ns", pa.int64()),
    ]
)


class RowGroup(InputPartition):
    """A part of the table that one task reads."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class TraceSource(DataSource):
    """The tables of one trace."""

    @classmethod
    def name(cls) -> str:
        """Return what the format is called."""
        return "octopis.trace"

    def schema(self) -> T.StructType:
        """Return the table's columns and, unless told otherwise, the facts."""
        own = spark_schema(SCHEMAS[self._table()])
        return T.StructType(own.fields + spark_schema(FACTS).fields) if self._facts() else own

    def reader(self, schema: T.StructType) -> "TraceReader":
        """Return what reads the table."""
        folder = self.options.get("path")
        if not folder:
            raise InvalidConfiguration("say which trace: .load(DIR)")
        return TraceReader(Path(folder), self._table(), schema, with_facts=self._facts())

    def _table(self) -> str:
        table = self.options.get("table", "deliveries")
        if table not in SCHEMAS:
            hint = did_you_mean(table, SCHEMAS) or f"; there are {', '.join(SCHEMAS)}"
            raise InvalidConfiguration(f"a trace has no table {table!r}{hint}")
        return table

    def _facts(self) -> bool:
        return self.options.get("facts", "true").lower() == "true"


class TraceReader(DataSourceReader):
    """Reads a table of a trace, a row group in each task, as Arrow batches."""

    def __init__(self, folder: Path, table: str, schema: T.StructType, *, with_facts: bool) -> None:
        self._path = check_table(folder, table)
        self._arrow = pa.schema([pa.field(each.name, _plain(each.type)) for each in SCHEMAS[table]])
        self._facts = facts_of(folder, read_summary(folder)) if with_facts else {}
        assert len(schema) == len(self._arrow) + len(self._facts)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the row groups."""
        with pq.ParquetFile(self._path) as file:
            return [RowGroup(number) for number in range(file.num_row_groups)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one row group."""
        assert isinstance(partition, RowGroup)
        with pq.ParquetFile(self._path) as file:
            rows = file.read_row_group(partition.number, columns=self._arrow.names)
        rows = rows.cast(self._arrow)
        for name, value in self._facts.items():
            column = pa.repeat(pa.scalar(value, FACTS.field(name).type), len(rows))
            rows = rows.append_column(name, column)
        yield from rows.combine_chunks().to_batches(max_chunksize=10_000)


def facts_of(folder: Path, summary: RunSummary) -> dict[str, str | int]:
    """Return what is known of a whole run, by column."""
    return {
        "run": folder.absolute().name,
        "scenario": summary.scenario,
        "algorithm": summary.algorithm,
        "seed": summary.seed,
        "run_source": summary.source,  # in some tables `source` is the broker at a link's start
        "state": summary.state,
        "begin_ns": summary.begin_ns,
    }


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
