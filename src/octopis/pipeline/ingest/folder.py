"""The folder that an ingest leaves: rows, quarantine, and a report that says what they are."""

from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from pyspark.sql import DataFrame, SparkSession

from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.mapping import Kind
from octopis.pipeline.ingest.rules import Rules
from octopis.pipeline.schemas import quoted

QUARANTINE_TABLE = "quarantine.parquet"
REPORT = "ingest.json"
SUCCESS = "_SUCCESS"


class KnownAttribute(msgspec.Struct, frozen=True):
    """What is known of an attribute once its rows are in the folder."""

    kind: Kind
    in_ns: bool = False
    """Whether a time is an integer, nanoseconds since 1970."""
    subscribe_by: Literal["range", "values"] = "range"


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, and what became of it."""

    sources: list[str]
    read: int
    accepted: int
    quarantined: int
    reasons: dict[str, int]
    """How many rows were set aside for each kind of reason."""
    name: str
    """What the table of rows is called."""
    key: list[str]
    whole: bool
    """Whether only rows with all attributes are published."""
    attributes: dict[str, KnownAttribute]


def attributes_of(rules: Rules) -> dict[str, KnownAttribute]:
    """Return what is known of the attributes, in their order."""
    return {
        rule.name: KnownAttribute(
            rule.kind,
            rule.in_ns and rule.kind is Kind.TIME,
            "range" if rule.is_range else "values",
        )
        for rule in rules.all
    }


class Data(NamedTuple):
    """Rows that were ingested, or made, and what is known of them."""

    frame: DataFrame
    attributes: dict[str, KnownAttribute]
    key: tuple[str, ...]
    whole: bool
    name: str

    @property
    def columns(self) -> list[str]:
        """The attributes as Spark takes their names."""
        return [quoted(name) for name in self.attributes]

    def check_attribute(self, name: str, option: str) -> KnownAttribute:
        """Return an attribute that an option names, or raise InvalidConfiguration."""
        if name not in self.attributes:
            hint = (
                did_you_mean(name, self.attributes) or f"; there are {', '.join(self.attributes)}"
            )
            raise InvalidConfiguration(f"{option}: there is no attribute {name!r}{hint}")
        return self.attributes[name]


def is_ingested(folder: Path) -> bool:
    """Tell whether a folder was left by an ingest."""
    return _report(folder) is not None


def check_ingested(folder: Path) -> IngestReport:
    """Return the report of an ingest, or raise InvalidConfiguration where a folder is of none."""
    report = _report(folder)
    if report is None:
        hint = "make it with octopis workload ingest"
        raise InvalidConfiguration(f"{folder} holds no ingested data: {hint}")
    return report


def _report(folder: Path) -> IngestReport | None:
    try:
        report = msgspec.json.decode((folder / REPORT).read_bytes(), type=IngestReport)
    except (OSError, msgspec.DecodeError):
        return None
    return report if (folder / f"{report.name}.parquet" / SUCCESS).exists() else None


def read_data(spark: SparkSession, folder: Path) -> Data:
    """Return the rows in a folder that was ingested, or raise InvalidConfiguration."""
    report = check_ingested(folder)
    path = folder.absolute() / f"{report.name}.parquet"  # Java may have been started elsewhere
    frame = spark.read.parquet(str(path))
    names = list(report.attributes)
    if sorted(frame.columns) != sorted(names):
        raise InvalidConfiguration(f"{path} has other columns than its {REPORT} says")
    return Data(frame, report.attributes, tuple(report.key), report.whole, report.name)
