"""The ground truth of a scenario: which subscription must get which notification.

The broker's own matching index is built once and broadcast; executors ask it batch by batch, and
one answer gives both the pairs and the brokers that must be reached. They write these themselves,
straight from Arrow to Parquet: on its usual way a row leaves Python, becomes a row of Java and then
a column again, which for tens of millions of small rows costs more than making them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from octopis.core.matching import BitsetIndex
from octopis.errors import InvalidConfiguration
from octopis.files import whole_folder, write_json
from octopis.pipeline.schemas import PAIRS, spark_schema
from octopis.pipeline.spark.session import ship, task_count
from octopis.pipeline.spark.writing import Batches, write_by_executors
from octopis.scenario import folder as files
from octopis.scenario.folder import Scenario
from octopis.scenario.publications import attributes_of
from octopis.scenario.tables import Subscriber
from octopis.trace.schemas import NAME

FOLDER = "truth"
PAIRS_TABLE = "pairs.parquet"
TARGETS_TABLE = "targets.parquet"
REPORT = "truth.json"

_PAIRS = pa.schema([("publisher", NAME), ("sequence", pa.int64()), ("subscription", NAME)])
"""PAIRS as executors write them: names repeat a lot, so each is written once."""

_TARGETS = pa.schema(
    [("publisher", pa.string()), ("sequence", pa.int64()), ("brokers", pa.list_(pa.string()))]
)
"""Which brokers a notification must reach, sorted."""


class TruthReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the ground truth was made from, and its size."""

    scenario_digest: str
    notifications: int
    subscriptions: int
    pairs: int


@dataclass(frozen=True, slots=True)
class Oracle:
    """The index, and the names of what it finds by number."""

    index: BitsetIndex[int, str]
    names: pa.Array
    hosts: npt.NDArray[np.int64]
    """The broker of each subscription, by its place in `brokers`."""
    brokers: pa.Array
    """Names of brokers with a subscription, sorted."""

    @classmethod
    def of(cls, subscribers: list[Subscriber]) -> "Oracle":
        """Return the oracle of a scenario's subscribers."""
        index: BitsetIndex[int, str] = BitsetIndex()
        index.add_many(
            (number, subscriber.filter, subscriber.broker.short)
            for number, subscriber in enumerate(subscribers)
        )
        index.match_numbers([{}] * 100)  # builds its blocks here, and not in every worker
        brokers = sorted({each.broker.short for each in subscribers})
        places = {name: place for place, name in enumerate(brokers)}
        return cls(
            index,
            pa.array([each.subscription for each in subscribers], pa.string()),
            np.array([places[each.broker.short] for each in subscribers], np.int64),
            pa.array(brokers, pa.string()),
        )


def write_truth(spark: SparkSession, scenario: Scenario, out: Path) -> TruthReport:
    """Leave the pairs, and each notification's target brokers, in a new folder."""
    oracle = Oracle.of(scenario.subscribers)
    rows = read_notifications(spark, scenario)
    with whole_folder(out) as folder:
        count = write_matches(spark, rows, oracle, folder)
        report = TruthReport(
            scenario_digest=scenario.digest,
            notifications=scenario.notification_count,
            subscriptions=len(scenario.subscribers),
            pairs=count,
        )
        write_json(folder / REPORT, report)
    return report


def true_pairs(spark: SparkSession, scenario: Scenario) -> DataFrame:
    """Return the pairs: those on disk beside the scenario, or else made now.

    Raises InvalidConfiguration where those on disk belong to another state of the scenario.
    """
    folder = scenario.folder / FOLDER
    if not folder.exists():
        oracle = Oracle.of(scenario.subscribers)
        return pairs(spark, read_notifications(spark, scenario), oracle)
    try:
        report = msgspec.json.decode((folder / REPORT).read_bytes(), type=TruthReport)
    except (OSError, msgspec.DecodeError) as failure:
        raise InvalidConfiguration(f"{folder} is not a whole ground truth: remove it") from failure
    if report.scenario_digest != scenario.digest:
        hint = f"remove it and run octopis workload truth {scenario.folder}"
        raise InvalidConfiguration(f"{folder} was made from another scenario: {hint}")
    return spark.read.schema(PAIRS).parquet(str((folder / PAIRS_TABLE).absolute()))


def read_notifications(spark: SparkSession, scenario: Scenario) -> DataFrame:
    """Return the scenario's notifications, spread over the executors."""
    path = (scenario.folder / files.NOTIFICATIONS).absolute()
    rows = spark.read.schema(spark_schema(scenario.notification_schema())).parquet(str(path))
    # A scenario's file is small enough for one task; matching is not.
    return rows.select("publisher", "sequence", "attributes").repartition(task_count(spark))


def pairs(spark: SparkSession, notifications: DataFrame, oracle: Oracle) -> DataFrame:
    """Return `publisher`, `sequence` and `subscription` of every delivery that is due."""
    shipped = ship(spark, oracle)

    def match(batches: Batches) -> Batches:
        for batch, _ in _matched(batches, shipped()):
            plain = [column.cast(pa.string()) for column in (batch.column(0), batch.column(2))]
            columns = [plain[0], batch.column(1), plain[1]]
            yield pa.RecordBatch.from_arrays(columns, names=PAIRS.fieldNames())

    return notifications.mapInArrow(match, PAIRS)


def write_matches(
    spark: SparkSession, notifications: DataFrame, oracle: Oracle, folder: Path
) -> int:
    """Write the pairs, and the brokers that each notification must reach; return how many pairs."""
    shipped = ship(spark, oracle)
    make = lambda batches: _matched(batches, shipped())  # noqa: E731 - travels with what it holds
    tables = {folder / PAIRS_TABLE: _PAIRS, folder / TARGETS_TABLE: _TARGETS}
    return write_by_executors(notifications, tables, make)[0]


def _matched(batches: Batches, oracle: Oracle) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Yield rows of both tables."""
    for batch in _small(batches):
        rows, numbers = oracle.index.match_numbers(attributes_of(batch.column("attributes")))
        places = pa.array(rows)
        pairs_of_batch = [
            batch.column("publisher").dictionary_encode().take(places),
            batch.column("sequence").take(places),
            pa.DictionaryArray.from_arrays(pa.array(numbers.astype("int32")), oracle.names),
        ]
        reached = np.zeros((len(batch), len(oracle.brokers)), np.bool_)
        reached[rows, oracle.hosts[numbers]] = True
        ends = np.cumsum(reached.sum(axis=1))
        brokers = pa.ListArray.from_arrays(
            pa.array(np.append(0, ends).astype("int32")),
            oracle.brokers.take(pa.array(np.nonzero(reached)[1])),
        )
        targets = [batch.column("publisher"), batch.column("sequence"), brokers]
        yield (
            pa.RecordBatch.from_arrays(pairs_of_batch, schema=_PAIRS),
            pa.RecordBatch.from_arrays(targets, schema=_TARGETS),
        )


def _small(batches: Batches) -> Batches:
    """Cut batches to the size at which the index works best and its answers stay small."""
    for batch in batches:
        for start in range(0, len(batch), 1024):
            yield batch.slice(start, 1024)
