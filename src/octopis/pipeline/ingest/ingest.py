"""Ingest: quote files become a table of quotes and a table of rows that were set aside.

accepted + quarantined = read, always: the rows are counted at both ends, and compared. Every file
is read once, in as many tasks as Spark cuts it into.
"""

import shutil
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.files import whole_folder, write_json
from octopis.pipeline.ingest import quotes as q
from octopis.pipeline.ingest.lines import Tally
from octopis.pipeline.ingest.quote_files import find_files
from octopis.pipeline.ingest.quotes import ACCEPTED, ASIDE, COUNTS, QUOTE_PARTS, synthetic_quotes
from octopis.pipeline.ingest.reading import first_lines, is_padres, read_rows
from octopis.pipeline.schemas import QUARANTINE, QUOTES
from octopis.pipeline.spark.settings import JAVA_OPTIONS
from octopis.pipeline.spark.writing import CODEC, write_by_executors

QUOTES_TABLE = "quotes.parquet"
QUARANTINE_TABLE = "quarantine.parquet"
REPORT = "ingest.json"

SPARK_SETTINGS = {JAVA_OPTIONS: "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
"""Python does the work: what Java would spend on optimising its own part is never earned back."""

_SUCCESS = "_SUCCESS"
_ASIDE, _COUNTS = "aside.parquet", "counts.parquet"


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, and what became of it."""

    sources: list[str]
    read: int
    accepted: int
    quarantined: int
    reasons: dict[str, int]
    """How many rows were set aside for each kind of reason."""


def ingest(spark: SparkSession, paths: list[Path], out: Path) -> IngestReport:
    """Read quote files and leave their quotes, and what was set aside, in a new folder."""
    files = find_files(paths)
    firsts = first_lines(files)
    headers = [str(path) for path, first in firsts.items() if not is_padres(first)]
    rows = read_rows(spark, files, firsts)
    with whole_folder(out.absolute()) as folder:  # executors may be started somewhere else
        parts = {
            folder / QUOTES_TABLE: QUOTE_PARTS,
            folder / _ASIDE: ASIDE,
            folder / _COUNTS: COUNTS,
        }
        codec = spark.conf.get(CODEC) or "zstd"
        write_by_executors(q.spread(rows.frame), parts, q.settled, codec)
        (folder / QUOTES_TABLE / _SUCCESS).touch()
        tally = Tally(pq.read_table(folder / _COUNTS).to_pylist(), files.names, headers)
        read = rows.count() - len(headers)
        if not read:
            raise InvalidConfiguration(f"{_shown(paths)} holds a header and no row")
        report = _report([str(path) for path in paths], read, tally)
        if report.quarantined:
            aside = spark.read.schema(from_arrow_schema(ASIDE)).parquet(str(folder / _ASIDE))
            quarantined = tally.quarantined(spark, aside)
            if not report.accepted:
                raise InvalidConfiguration(_nothing_left(quarantined, report))
            quarantined.write.parquet(str(folder / QUARANTINE_TABLE))
        else:
            _write_no_quarantine(folder)
        _write_report(folder, report)
        for made_on_the_way in (_ASIDE, _COUNTS):
            shutil.rmtree(folder / made_on_the_way)
    return report


def ingest_synthetic(spark: SparkSession, seed: int, days: int, out: Path) -> IngestReport:
    """Leave the seeded quotes in a new folder, as if they had been read."""
    quotes = synthetic_quotes(spark, seed, days)
    with whole_folder(out) as folder:
        quotes.write.parquet(str(folder / QUOTES_TABLE))
        _write_no_quarantine(folder)
        count = read_quotes(spark, folder).count()
        report = IngestReport(
            sources=[f"synthetic, seed {seed}"],
            read=count,
            accepted=count,
            quarantined=0,
            reasons={},
        )
        _write_report(folder, report)
    return report


def is_ingested(folder: Path) -> bool:
    """Tell whether a folder was left by an ingest."""
    return (folder / QUOTES_TABLE / _SUCCESS).exists()


def check_ingested(folder: Path) -> None:
    """Raise InvalidConfiguration unless a folder was left by an ingest."""
    if not is_ingested(folder):
        hint = "make it with octopis workload ingest"
        raise InvalidConfiguration(f"{folder} holds no ingested quotes: {hint}")


def read_quotes(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the quotes in a folder that was ingested, or raise InvalidConfiguration."""
    check_ingested(folder)
    path = folder.absolute() / QUOTES_TABLE  # Java may have been started somewhere else
    return spark.read.schema(QUOTES).parquet(str(path))


def _report(sources: list[str], read: int, tally: Tally) -> IngestReport:
    reasons = dict(sorted(tally.reasons.items()))
    accepted = reasons.pop(ACCEPTED, 0)
    quarantined = sum(reasons.values())
    if accepted + quarantined != read:
        raise OperationFailed(
            f"{read} rows were read, but {accepted} accepted and {quarantined} set aside: "
            "a file has changed while it was read, or this is a fault in OctopiS"
        )
    return IngestReport(
        sources=sources, read=read, accepted=accepted, quarantined=quarantined, reasons=reasons
    )


def _nothing_left(aside: DataFrame, report: IngestReport) -> str:
    reason, count = max(report.reasons.items(), key=lambda item: item[1])
    example = aside.orderBy("file", "line").first()
    assert example is not None
    where = f"{example['file']}, line {example['line']}: {example['reason']}"
    return f"no row is sound: {count} of {report.read} say '{reason}'; the first is {where}"


def _shown(paths: list[Path]) -> str:
    return ", ".join(map(str, paths[:3])) + (" ..." if len(paths) > 3 else "")


def _write_no_quarantine(folder: Path) -> None:
    """Write the empty table: no work for Spark."""
    (folder / QUARANTINE_TABLE).mkdir()
    schema = to_arrow_schema(QUARANTINE)
    pq.write_table(schema.empty_table(), folder / QUARANTINE_TABLE / "part-00000.parquet")


def _write_report(folder: Path, report: IngestReport) -> None:
    write_json(folder / REPORT, report)
