"""Results of many runs as files: each table as Parquet and as CSV."""

from collections.abc import Collection
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from octopis.files import whole_folder
from octopis.pipeline.results import metrics as m
from octopis.pipeline.results.check import fingerprints
from octopis.pipeline.results.metrics import stability_series

USUAL = ("metrics", "cases", "queues", "stability", "queue_series")
"""Tables that everybody gets; `fingerprints` is for who asks."""


def tables_of(spark: SparkSession, traces: m.Traces) -> dict[str, DataFrame]:
    """Return every table of results that the traces can give; none is computed yet."""
    tables = {
        "metrics": m.run_metrics(traces),
        "cases": m.case_counts(spark, traces.summaries),
    }
    links, queues = traces.table("links"), traces.table("queues")
    deliveries, publications = traces.table("deliveries"), traces.table("publications")
    if links is not None:
        tables["queues"] = m.queue_metrics(links, traces.summary_frame())
    if deliveries is not None and publications is not None:
        tables["fingerprints"] = fingerprints(deliveries)
        tables["stability"] = stability_series(m.notification_delays(deliveries, publications))
    if queues is not None:
        tables["queue_series"] = m.queue_series(queues)
    return tables


def write_results(
    spark: SparkSession, folders: list[Path], out: Path, wanted: Collection[str] = USUAL
) -> list[dict[str, object]]:
    """Measure the traces, leave the wanted tables in a new folder, return the rows of metrics."""
    traces = m.Traces(spark, folders)
    rows: list[dict[str, object]] = []
    with whole_folder(out) as folder:
        for name, frame in tables_of(spark, traces).items():
            if name not in wanted:
                continue
            table = frame.toArrow()  # small: a row for each run, queue, window or 1,000 deliveries
            pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
            pa_csv.write_csv(table, folder / f"{name}.csv")
            if name == "metrics":
                rows = table.to_pylist()
    return rows
