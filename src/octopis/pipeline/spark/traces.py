"""Traces on disk as DataFrames: whole or refused, one or many, and as a Spark data source.

`spark.read.format("octopis.trace").load(DIR)` reads a table of a run, or of several:
`.load([DIR, DIR])`. Options: `table` (deliveries, unless told), `facts` (true, unless told: what
the run's summary says of the scenario comes along as columns, so that runs can be told apart) and
`columns` (all, unless told). Spark does not tell a source in Python which columns a query uses, so
a user does, by this option or by `.schema(...)`: only these are read from the disk.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from os.path import normpath
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration
from octopis.pipeline.schemas import literal_path, plain_path, spark_schema
from octopis.trace import Level, RunSummary
from octopis.trace.runs import parts_of, run_summary
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

_AS_IN_URLS = re.compile(r"[A-Za-z0-9._,=-]+")
"""Names of folders that are spelled in addresses of files as they are."""


@dataclass(frozen=True)
class Trace:
    """A run on disk, in one folder or in one of each broker."""

    folder: Path
    parts: tuple[Path, ...]
    summary: RunSummary

    @classmethod
    def at(cls, folder: Path) -> "Trace":
        """Return the run in `folder`; raise InvalidConfiguration where there is none."""
        summary = run_summary(folder)
        return cls(folder, tuple(parts_of(folder)), summary)

    @property
    def name(self) -> str:
        """What the run is called: as its folder."""
        return Path(normpath(self.folder.absolute())).name

    @property
    def is_overlay(self) -> bool:
        """Whether each broker has a folder of its own in there."""
        return self.parts != (self.folder,)

    def has(self, table: str) -> bool:
        """Tell whether the run's level has a table."""
        return table in Level(self.summary.level).tables

    def paths(self, table: str) -> list[Path]:
        """Return the files of a table, or raise InvalidConfiguration where they are not whole."""
        if not self.has(table):
            raise InvalidConfiguration(
                f"{self.folder} has no table of {table}: "
                f"it was written at level {self.summary.level}"
            )
        paths = [part.absolute() / f"{table}.parquet" for part in self.parts]
        rows = sum(map(_count, paths))
        made = self.summary.deliveries
        # A live broker also counts what a slow client never got, and no row tells of that.
        is_less = rows < made and self.summary.source == "simulator"
        if table == "deliveries" and (is_less or rows > made):
            where = self.folder if self.is_overlay else paths[0]
            raise InvalidConfiguration(
                f"{where} holds {rows} of the {made} deliveries of its run: "
                "it is not the file that the run wrote"
            )
        return paths


def check_table(folder: Path, table: str) -> list[Path]:
    """Return where a table of a run is, or raise InvalidConfiguration where it is not whole."""
    return Trace.at(folder).paths(table)


def read_trace(spark: SparkSession, folder: Path, table: str) -> DataFrame:
    """Return a table of a run, with the schema that every trace has."""
    return _read(spark, [Trace.at(folder)], table)


def _read(spark: SparkSession, traces: list[Trace], table: str) -> DataFrame:
    paths = [literal_path(path) for trace in traces for path in trace.paths(table)]
    return spark.read.schema(spark_schema(SCHEMAS[table])).parquet(*paths)


def open_trace(folder: Path) -> RunSummary:
    """Return the summary of a run whose tables are all whole, or raise InvalidConfiguration."""
    return _opened(folder).summary


def _opened(folder: Path) -> Trace:
    trace = Trace.at(folder)
    for table in Level(trace.summary.level).tables:
        trace.paths(table)
    return trace


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
    """Runs that were opened, each whole and with a name of its own."""

    def __init__(self, spark: SparkSession, folders: list[Path]) -> None:
        self._spark = spark
        self._traces: dict[str, Trace] = {}
        for folder in folders:
            trace = _opened(folder)
            if trace.name in self._traces:
                raise InvalidConfiguration(
                    f"{self._traces[trace.name].folder} and {folder} have the same name: rename one"
                )
            self._traces[trace.name] = trace

    @property
    def summaries(self) -> dict[str, RunSummary]:
        """The summary of each run, by its name."""
        return {name: trace.summary for name, trace in self._traces.items()}

    def table(self, table: str) -> DataFrame | None:
        """Return a table of all runs that have it, with `run` in front; None if none has."""
        having = [trace for trace in self._traces.values() if trace.has(table)]
        # One scan for all: a union of a scan each would take longer to plan than to run. Only
        # overlays stand apart: their files are one folder further down.
        kinds = [[trace for trace in having if trace.is_overlay is kind] for kind in (False, True)]
        scans = [self._scan(traces, table) for traces in kinds if traces]
        return reduce(DataFrame.unionAll, scans) if scans else None

    def _scan(self, traces: list[Trace], table: str) -> DataFrame:
        up = -3 if traces[0].is_overlay else -2
        url = F.col("_metadata.file_path")
        name = F.substring_index(F.substring_index(url, "/", up), "/", 1)
        if not all(_AS_IN_URLS.fullmatch(trace.name) for trace in traces):
            name = plain_path(name)  # takes longer than all the rest, for every row
        return _read(self._spark, traces, table).select(name.alias("run"), *SCHEMAS[table].names)

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

    def __init__(self, path: Path, number: int, facts: dict[str, str | int]) -> None:
        super().__init__((str(path), number))
        self.path = path
        self.number = number
        self.facts = facts


class TraceSource(DataSource):
    """One table of some runs."""

    @classmethod
    def name(cls) -> str:
        """Return what the format is called."""
        return "octopis.trace"

    def schema(self) -> T.StructType:
        """Return the columns that are wanted: all of the table and the facts, unless told."""
        every = spark_schema(_columns(self._table(), with_facts=self._facts()))
        wanted = self.options.get("columns")
        if wanted is None:
            return every
        return T.StructType([_field(every, name.strip()) for name in wanted.split(",")])

    def reader(self, schema: T.StructType) -> "TraceReader":
        """Return what reads the columns of `schema`, which a user may have given, and no others."""
        every = spark_schema(_columns(self._table(), with_facts=True))
        for field in schema:
            kind = _field(every, field.name).dataType
            if kind != field.dataType:
                raise InvalidConfiguration(
                    f"the column {field.name} is {kind.simpleString()}, "
                    f"not {field.dataType.simpleString()}"
                )
        return TraceReader(self._folders(), self._table(), schema.fieldNames())

    def _folders(self) -> list[Path]:
        """Return what was given to .load: Spark passes on several as JSON."""
        one, several = self.options.get("path"), self.options.get("paths")
        found = msgspec.json.decode(several, type=list[str]) if several else [one] if one else []
        if not found:
            raise InvalidConfiguration("say which trace: .load(DIR), or .load([DIR, DIR])")
        return [Path(folder) for folder in found]

    def _table(self) -> str:
        table = self.options.get("table", "deliveries")
        if table not in SCHEMAS:
            hint = did_you_mean(table, SCHEMAS) or f"; there are {', '.join(SCHEMAS)}"
            raise InvalidConfiguration(f"a trace has no table {table!r}{hint}")
        return table

    def _facts(self) -> bool:
        return self.options.get("facts", "true").lower() == "true"


class TraceReader(DataSourceReader):
    """Reads some columns of a table, a row group in each task, as Arrow batches."""

    def __init__(self, folders: list[Path], table: str, columns: list[str]) -> None:
        known = _columns(table, with_facts=True)
        self._arrow = pa.schema([known.field(name) for name in columns])
        self._own = [name for name in columns if name in SCHEMAS[table].names]
        self._files = [
            (path, facts_of(trace))
            for trace in map(Trace.at, folders)
            for path in trace.paths(table)
        ]

    def partitions(self) -> Sequence[InputPartition]:
        """Return the row groups of all files."""
        found = []
        for path, facts in self._files:
            with pq.ParquetFile(path) as file:
                found += [RowGroup(path, number, facts) for number in range(file.num_row_groups)]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one row group."""
        assert isinstance(partition, RowGroup)
        with pq.ParquetFile(partition.path) as file:
            count = file.metadata.row_group(partition.number).num_rows
            rows = file.read_row_group(partition.number, columns=self._own)
        columns = [
            rows.column(field.name).cast(field.type)
            if field.name in self._own
            else pa.repeat(pa.scalar(partition.facts[field.name], field.type), count)
            for field in self._arrow
        ]
        table = pa.table(columns, schema=self._arrow)
        yield from table.combine_chunks().to_batches(max_chunksize=10_000)


def facts_of(trace: Trace) -> dict[str, str | int]:
    """Return what is known of a whole run, by column."""
    summary = trace.summary
    return {
        "run": trace.name,
        "scenario": summary.scenario,
        "algorithm": summary.algorithm,
        "seed": summary.seed,
        "run_source": summary.source,  # in some tables `source` is the broker at a link's start
        "state": summary.state,
        "begin_ns": summary.begin_ns,
    }


def _columns(table: str, *, with_facts: bool) -> pa.Schema:
    own = [pa.field(each.name, _plain(each.type)) for each in SCHEMAS[table]]
    return pa.schema([*own, *FACTS] if with_facts else own)


def _field(schema: T.StructType, name: str) -> T.StructField:
    if name not in schema.fieldNames():
        names = schema.fieldNames()
        hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
        raise InvalidConfiguration(f"the table has no column {name!r}{hint}")
    return schema[name]


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
