"""Ingest: files or a table become rows of attributes, and a table of rows that were set aside.

accepted + quarantined = read, always: the rows are counted at both ends, and compared. Every row is
read once, in as many tasks as Spark cuts the files into; where types are left open, once before.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.files import whole_folder, write_json
from octopis.pipeline.ingest import settling
from octopis.pipeline.ingest.deriving import derived, forgiving, short
from octopis.pipeline.ingest.folder import (
    QUARANTINE_TABLE,
    REPORT,
    SUCCESS,
    IngestReport,
    attributes_of,
)
from octopis.pipeline.ingest.inferring import fields_of, infer, rules_for
from octopis.pipeline.ingest.judging import PLACES, TEXT, TEXT_KEPT, WHERE
from octopis.pipeline.ingest.lines import Tally
from octopis.pipeline.ingest.mapping import Mapping, quotes_mapping
from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.ingest.reading import (
    SourceRows,
    first_lines,
    is_padres,
    read_rows,
    read_table,
)
from octopis.pipeline.ingest.rules import Rules
from octopis.pipeline.ingest.settling import ACCEPTED, ASIDE, COUNTS, settled
from octopis.pipeline.ingest.source_files import find_files
from octopis.pipeline.schemas import QUARANTINE
from octopis.pipeline.spark.settings import JAVA_OPTIONS
from octopis.pipeline.spark.writing import CODEC, write_by_executors

SPARK_SETTINGS = {JAVA_OPTIONS: "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
"""Python does the work: what Java would spend on optimising its own part is never earned back."""

_ASIDE, _COUNTS = "aside.parquet", "counts.parquet"


def ingest(
    spark: SparkSession, paths: list[Path], out: Path, mapping: Mapping | None = None
) -> IngestReport:
    """Read files and leave their rows, and what was set aside, in a new folder.

    Without a mapping they are stock quotes. Raises InvalidConfiguration where the files do not
    hold what the mapping asks for.
    """
    files = find_files(paths)
    firsts = first_lines(files)
    headers = [str(path) for path, first in firsts.items() if not is_padres(first)]
    try:
        shape = infer(spark, files, mapping or quotes_mapping())
        rows = read_rows(spark, files, firsts, shape)
    except AnalysisException as failure:  # as of fields that are there twice
        raise InvalidConfiguration(f"{_shown(files.names)}: {short(failure)}") from failure
    return _write(spark, rows, out, _Sources(list(map(str, paths)), files.names, headers))


def ingest_table(
    spark: SparkSession, frame: DataFrame, name: str, out: Path, mapping: Mapping
) -> IngestReport:
    """Leave the rows of a frame, and what was set aside of it, in a new folder, as `ingest` does.

    `name` is what the frame is called in the report and in the quarantine; rows have no lines.
    """
    rules = rules_for(list(fields_of(frame.schema)), mapping, name)
    rows = read_table(frame, name, rules)
    return _write(spark, rows, out, _Sources([name], [name], [], has_lines=False))


def open_table(spark: SparkSession, name: str) -> DataFrame:
    """Return a table or view that Spark knows, or raise InvalidConfiguration."""
    try:
        frame = spark.table(name)
        _ = frame.schema  # asks Spark Connect, too
    except PySparkException as failure:
        raise InvalidConfiguration(f"Spark knows no table {name!r}: {short(failure)}") from failure
    return frame


class _Sources(msgspec.Struct, frozen=True):
    """What is read: as the user named it, the files in order, and which of them have headers."""

    shown: list[str]
    names: Sequence[str]
    headers: list[str]
    has_lines: bool = True


def _write(spark: SparkSession, rows: SourceRows, out: Path, sources: _Sources) -> IngestReport:
    name = f"{rows.rules.mapping.name}.parquet"
    with (
        whole_folder(out.absolute()) as folder,  # executors may be started somewhere else
        forgiving(spark),
    ):
        rules = _write_rows(spark, rows, folder, name)
        (folder / name / SUCCESS).touch()
        counts = pq.read_table(folder / _COUNTS).to_pylist()
        tally = Tally(counts, sources.names, has_lines=sources.has_lines)
        read = rows.count() - len(sources.headers)
        if not read:
            what = "a header and no row" if sources.headers else "no row"
            raise InvalidConfiguration(f"{_shown(sources.shown)} holds {what}")
        report = _report(sources.shown, read, tally, rules)
        if report.quarantined:
            aside = spark.read.schema(from_arrow_schema(ASIDE)).parquet(str(folder / _ASIDE))
            quarantined = tally.quarantined(spark, _with_texts(aside, rows))
            if not report.accepted:
                raise InvalidConfiguration(_nothing_left(quarantined, report))
            quarantined.write.parquet(str(folder / QUARANTINE_TABLE))
        else:
            _write_no_quarantine(folder)
        write_json(folder / REPORT, report)
        for made_on_the_way in (_ASIDE, _COUNTS):
            shutil.rmtree(folder / made_on_the_way)
    return report


def _write_rows(spark: SparkSession, rows: SourceRows, folder: Path, name: str) -> Rules:
    """Write the three tables; return the rules with the kinds of derived attributes."""
    rules = rows.rules
    if rules.rows_stay_apart and len(rows.groups) == 1:  # all in one go, without a way back to Java
        (group,) = rows.groups
        frame, judged = group.frame, group.judged
        make = lambda batches: settled(judged(batches), rules)  # noqa: E731 - travels by itself
    else:
        frame = rows.frame
        if rules.derived or rules.mapping.checks:
            frame, rules = derived(frame, rules)
        if rules.key:
            frame = settling.spread(frame, rules.key)
        make = lambda batches: settled(batches, rules)  # noqa: E731 - travels by itself
    parts = {folder / name: rules.schema, folder / _ASIDE: ASIDE, folder / _COUNTS: COUNTS}
    write_by_executors(frame, parts, make, spark.conf.get(CODEC) or "zstd")
    return rules


def _with_texts(aside: DataFrame, rows: SourceRows) -> DataFrame:
    """Return rows that are set aside with their texts; where some lack them, all are read again."""
    if aside.where(F.col("text").isNull()).isEmpty():
        return aside
    again = [F.col(name).alias(plain) for name, plain in zip(WHERE, PLACES, strict=True)]
    texts = rows.texts.select(*again, F.left(TEXT, F.lit(TEXT_KEPT)).alias("again"))
    found = F.coalesce("text", "again").alias("text")
    others = [name for name in ASIDE.names if name != "text"]
    return aside.join(texts, list(PLACES), how="left").select(*others, found)


def ingest_synthetic(spark: SparkSession, seed: int, days: int, out: Path) -> IngestReport:
    """Leave the seeded quotes in a new folder, as if they had been read."""
    quotes = synthetic_quotes(spark, seed, days)
    with whole_folder(out) as folder:
        quotes.frame.write.parquet(str(folder.absolute() / f"{quotes.name}.parquet"))
        _write_no_quarantine(folder)
        count = quotes.frame.count()
        report = IngestReport(
            sources=[f"synthetic, seed {seed}"],
            read=count,
            accepted=count,
            quarantined=0,
            reasons={},
            name=quotes.name,
            key=list(quotes.key),
            whole=quotes.whole,
            attributes=quotes.attributes,
        )
        write_json(folder / REPORT, report)
    return report


def _report(sources: list[str], read: int, tally: Tally, rules: Rules) -> IngestReport:
    reasons = dict(sorted(tally.reasons.items()))
    accepted = reasons.pop(ACCEPTED, 0)
    quarantined = sum(reasons.values())
    if accepted + quarantined != read:
        raise OperationFailed(
            f"{read} rows were read, but {accepted} accepted and {quarantined} set aside: "
            "a file has changed while it was read, or this is a fault in OctopiS"
        )
    return IngestReport(
        sources=sources,
        read=read,
        accepted=accepted,
        quarantined=quarantined,
        reasons=reasons,
        name=rules.mapping.name,
        key=list(rules.key),
        whole=rules.mapping.whole,
        attributes=attributes_of(rules),
    )


def _nothing_left(aside: DataFrame, report: IngestReport) -> str:
    reason, count = max(report.reasons.items(), key=lambda item: item[1])
    example = aside.orderBy("file", "line").first()
    assert example is not None
    line = "" if example["line"] is None else f", line {example['line']}"
    where = f"{example['file']}{line}: {example['reason']}"
    return f"no row is sound: {count} of {report.read} say '{reason}'; the first is {where}"


def _shown(sources: Sequence[str]) -> str:
    return ", ".join(sources[:3]) + (" ..." if len(sources) > 3 else "")


def _write_no_quarantine(folder: Path) -> None:
    """Write the empty table: no work for Spark."""
    (folder / QUARANTINE_TABLE).mkdir()
    schema = to_arrow_schema(QUARANTINE)
    pq.write_table(schema.empty_table(), folder / QUARANTINE_TABLE / "part-00000.parquet")
