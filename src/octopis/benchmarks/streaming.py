"""The streaming source, measured: a broker in a process of its own, Spark in another."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from octopis.benchmarks.processes import free_ports, started_role
from octopis.client.sync_client import SyncClient, connect_sync
from octopis.core.model import Value
from octopis.pipeline.streaming.connection import Home

COLUMNS = (
    "n LONG, symbol STRING, open DOUBLE, high DOUBLE, low DOUBLE, close DOUBLE, volume LONG, "
    "venue STRING, halted BOOLEAN, change DOUBLE"
)
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
        _run(spark, url, folder / "warm")  # Spark's workers start here
        _publish(client, 1_000, rows)
        batches = _run(spark, url, folder / "large")
        busy_s = sum(each["durationMs"]["triggerExecution"] for each in batches) / 1e3
        read = sum(each["numInputRows"] for each in batches)
        return SourceFigures(rows, read / busy_s, _small(spark, client, url, folder / "large"))


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


def _run(spark: SparkSession, url: str, checkpoint: Path) -> list[Any]:
    """Read all that there is, and return what Spark says of each batch."""
    started = _writer(spark, url, checkpoint).trigger(availableNow=True).start()
    started.awaitTermination()
    return [each for each in started.recentProgress if each["numInputRows"]]


def _small(spark: SparkSession, client: SyncClient, url: str, checkpoint: Path) -> list[float]:
    query = _writer(spark, url, checkpoint).start()
    try:
        for _ in range(_WARM + SMALL):
            client.publish(_row(1))
            query.processAllAvailable()
        found = [each for each in query.recentProgress if each["numInputRows"]]
        return [each["durationMs"]["triggerExecution"] / 1e3 for each in found[_WARM:]]
    finally:
        query.stop()


def _writer(spark: SparkSession, url: str, checkpoint: Path) -> Any:
    source = spark.readStream.format("octopis").option("subscription", "bench")
    frame = source.schema(COLUMNS).load(url)
    return frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
