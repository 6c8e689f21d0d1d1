"""The streaming source and sink, measured: a broker in a process of its own, Spark in another."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from octopis.benchmarks.processes import free_ports, started_role
from octopis.client.sync_client import SyncClient, connect_sync
from octopis.core.model import Value
from octopis.errors import OperationFailed
from octopis.pipeline.streaming.home import Home

COLUMNS = (
    "n LONG, symbol STRING, open DOUBLE, high DOUBLE, low DOUBLE, close DOUBLE, volume LONG, "
    "venue STRING, halted BOOLEAN, change DOUBLE"
)
CORES = 2
"""So many tasks of the first batch start a worker each: that is not measured."""

SMALL = 12
_WARM = 3
_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """How fast much is read, and how long each batch of almost nothing takes."""

    rows: int
    rows_per_s: float
    small_s: list[float]


def source_figures(spark: SparkSession, folder: Path, rows: int) -> SourceFigures:
    """Read a durable subscription of so many into a sink that does nothing; then row by row."""
    with _broker(folder / "disk") as url, connect_sync(url) as client:
        with closing(Home(url, "")) as home:
            home.ask(lambda connection: connection.open("bench", "n >= 0"))
        _publish(client, 0, 1_000)
        _all(_to_nowhere(_rows(spark, url, minPartitions=CORES), folder / "warm"))
        _publish(client, 1_000, rows)
        large = _all(_to_nowhere(_rows(spark, url), folder / "large"))
        small = _small(_to_nowhere(_rows(spark, url), folder / "large"), client)
        return SourceFigures(rows, _rows_per_s(large), small)


def sink_rows_per_s(spark: SparkSession, folder: Path, rows: int) -> float:
    """Read so many rows and publish each once, for a durable subscription at the same broker."""
    with _broker(folder / "disk") as url, connect_sync(url) as client:
        with closing(Home(url, "")) as home:
            home.ask(lambda connection: connection.open("bench", "n >= 0"))
            home.ask(lambda connection: connection.open("written", "id >= 0"))
            _publish(client, 0, 1_000)
            warm = _all(_to_overlay(_rows(spark, url, minPartitions=CORES), url, folder / "warm"))
            _publish(client, 1_000, rows)
            batches = _all(_to_overlay(_rows(spark, url), url, folder / "large"))
            found = home.ask(lambda connection: connection.info("written"))
        assert found is not None, "it was made above"
        read = sum(each["numInputRows"] for each in warm + batches)
        if found.end != read:
            raise OperationFailed(f"{read:,} rows were read, and {found.end:,} published")
    return _rows_per_s(batches)


@contextmanager
def _broker(folder: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    options = {"overlay": "line-1", "ports": [port], "brokers": [0], "algorithm": "tnr"}
    with started_role("brokers", options | {"folder": str(folder)}) as process:
        process.hear()
        yield f"octopis://127.0.0.1:{port}"


def _publish(client: SyncClient, first: int, until: int) -> None:
    for start in range(first, until, _AT_ONCE):
        client.publish_many(map(_row, range(start, min(start + _AT_ONCE, until))))


def _row(n: int) -> dict[str, Value]:
    close = 20 + n % 1_000 / 8
    prices: dict[str, Value] = {"open": 20.5, "high": close + 3, "low": 18.25, "close": close}
    about: dict[str, Value] = {"n": n, "symbol": f"S{n % 500:03}", "volume": 100 * n}
    return about | prices | {"venue": "XETR", "halted": n % 97 == 0, "change": n % 7 / 4}


def _all(writer: Any) -> list[Any]:
    """Read all that there is, and return what Spark says of each batch."""
    started = writer.trigger(availableNow=True).start()
    started.awaitTermination()
    return [each for each in started.recentProgress if each["numInputRows"]]


def _rows_per_s(batches: list[Any]) -> float:
    busy_s = sum(each["durationMs"]["triggerExecution"] for each in batches) / 1e3
    return float(sum(each["numInputRows"] for each in batches) / busy_s)


def _small(writer: Any, client: SyncClient) -> list[float]:
    query = writer.start()
    try:
        for _ in range(_WARM + SMALL):
            client.publish(_row(1))
            query.processAllAvailable()
        found = [each for each in query.recentProgress if each["numInputRows"]]
        return [each["durationMs"]["triggerExecution"] / 1e3 for each in found[_WARM:]]
    finally:
        query.stop()


def _rows(spark: SparkSession, url: str, **options: int) -> DataFrame:
    source = spark.readStream.format("octopis").option("subscription", "bench")
    return source.options(**options).schema(COLUMNS).load(url)


def _to_nowhere(frame: DataFrame, checkpoint: Path) -> Any:
    return frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))


def _to_overlay(frame: DataFrame, url: str, checkpoint: Path) -> Any:
    # By another name, so that what is published is not read once more.
    writer = frame.withColumnRenamed("n", "id").writeStream.format("octopis").option("address", url)
    return writer.option("checkpointLocation", str(checkpoint))
