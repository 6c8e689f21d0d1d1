"""Results of many runs as files: each table as Parquet and as CSV."""

from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from octopis.pipeline import metrics as m
from octopis.pipeline.folders import new_folder
from octopis.pipeline.stability import stability_series


def tables_of(spark: SparkSession, traces: m.Traces) -> dict[str, DataFrame]:
    """Return every table of results that the traces can give."""
    tables = {
        "metrics": m.run_metrics(traces),
        "cases": m.case_counts(spark, traces.summaries),
    }
    links, queues = traces.table("links"), traces.table("queues")
    deliveries, publications = traces.table("deliveries"), traces.table("publications")
    if links is not None:
        tables["queues"] = m.queue_metrics(links, traces.summary_frame())
    if deliveries is not None and publications is not None:
        tables["stability"] = stability_series(m.notification_delays(deliveries, publications))
    if queues is not None:
        tables["queue_series"] = m.queue_series(queues)
    return tables


def write_results(spark: SparkSession, folders: list[Path], out: Path) -> list[dict[str, object]]:
    """Measure the traces, leave the tables in a new folder, and return the rows of metrics."""
    traces = m.Traces(spark, folders)
    rows: list[dict[str, object]] = []
    with new_folder(out) as folder:
        for name, frame in tables_of(spark, traces).items():
            table = frame.toArrow()  # small: a row for each run, queue, window or 1,000 deliveries
            pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
            pa_csv.write_csv(table, folder / f"{name}.csv")
            if name == "metrics":
                rows = table.to_pylist()
    return rows
