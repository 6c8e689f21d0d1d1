"""What `octopis bench pipeline` measures, small: each figure is of work that was really done."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from octopis.benchmarks.spark import pipeline, readings
from octopis.benchmarks.spark.figures import worker_memory
from octopis.benchmarks.spark.made_trace import write_made_trace
from octopis.benchmarks.spark.parts import Part
from octopis.pipeline.spark.traces import open_trace, read_trace


def test_ingest_truth_and_metrics_are_measured(spark: SparkSession, tmp_path: Path):
    figures = [
        *pipeline._ingest(spark, tmp_path, 0.005, 1),
        *pipeline._truth(spark, tmp_path, 0.005, 1),
        *pipeline._metrics(spark, tmp_path, 0.001, 1),
    ]
    by_name = {figure.what: figure for figure in figures}
    assert len(by_name) == 10
    assert by_name["ingest"].size == "1,000 rows"
    assert by_name["ground truth"].size == "1,340 x 50"
    assert by_name["metrics"].size == "20,000 deliveries"
    assert all(figure.value > 0 for figure in figures)


def test_ingest_of_json_and_the_memory_of_the_driver_are_measured(
    spark: SparkSession, tmp_path: Path
):
    figures = list(readings.any_data(spark, tmp_path, 0.002, 1))
    assert [(figure.size, figure.unit) for figure in figures] == [
        ("2,000 rows", "s"),
        *(("200 x 20", unit) for unit in ("s", "MB", "MB")),
        *(("2,000 x 20", unit) for unit in ("s", "MB", "MB")),
        ("2,000 rows", "MB more"),
    ]
    assert all(figure.value > 0 for figure in figures if figure.unit == "s")
    takes = [figure.value for figure in figures if figure.unit == "MB"]
    assert all(0 <= python < 500 for python in takes[::2])
    assert all(20 < java < 1_100 for java in takes[1::2]), "it is never empty"
    assert figures[-1].value == pytest.approx(sum(takes[2:]) - sum(takes[:2]))


def test_the_streaming_source_and_sink_are_measured(spark: SparkSession, tmp_path: Path):
    large, small, both = pipeline._streaming(spark, tmp_path, 0.001, 1)
    assert (large.size, large.unit) == ("2,000 rows of 10 columns", "rows/s")
    assert small.size == "12 batches of 1 row"
    assert large.value > 0
    assert small.value > 0
    assert (both.size, both.unit) == ("2,000 rows read and published", "rows/s")
    assert both.value > 0


def test_one_part_can_be_measured_alone(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pipeline, "open_spark", lambda *_: nullcontext(spark))  # not a second Java
    figures = list(pipeline.run(0.001, 1, only=[Part.INGEST]))
    assert [figure.what for figure in figures] == ["ingest"]


def test_made_trace_is_a_whole_trace(spark: SparkSession, tmp_path: Path):
    trace = write_made_trace(tmp_path / "t", 30_000, 1)
    assert open_trace(trace).deliveries == 30_000
    keys = read_trace(spark, trace, "deliveries").select("publisher", "sequence").distinct()
    assert keys.count() == 100


def test_memory_of_workers_is_seen(spark: SparkSession):
    def hold(batches):
        import time  # noqa: PLC0415 - in the worker

        held = b"x" * 200_000_000
        for batch in batches:
            time.sleep(1.5)
            yield batch
        assert held

    with worker_memory() as peak:
        spark.range(0, 1, 1, 1).mapInArrow(hold, "id long").collect()
    assert peak.mb > 200
