"""The driver of a query is killed at random moments, and a file sink still has every row once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.durable_disk import broker_with_disk, desk

ROWS = 6_000
KILLS = 2
PROGRAM = """
import sys
from octopis.pipeline.spark.session import open_spark

url, folder = sys.argv[1:]
with open_spark("local[2]", {"spark.driver.memory": "1g"}) as spark:
    source = spark.readStream.format("octopis").option("subscription", "risk")
    frame = source.option("maxOffsetsPerTrigger", 100).schema("n LONG, _position LONG").load(url)
    writer = frame.writeStream.format("parquet").option("path", folder + "/out")
    query = writer.option("checkpointLocation", folder + "/checkpoint").start()
    query.awaitTermination()
"""


def killed_at_random(url: str, folder: Path, wait_s: float) -> None:
    """Run the query until it has finished a batch, and a moment longer; then kill all of it."""
    commits, command = folder / "checkpoint" / "commits", [sys.executable, "-c", PROGRAM]
    before = len(list(commits.glob("[0-9]*")))
    process = subprocess.Popen([*command, url, str(folder)], start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while len(list(commits.glob("[0-9]*"))) <= before:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(wait_s)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_every_row_is_there_once_whenever_the_driver_is_killed(spark: SparkSession, tmp_path: Path):
    chance = random.Random(7)  # noqa: S311 - no secret
    with broker_with_disk(tmp_path / "disk") as url, desk(url) as at_broker:
        at_broker.make("risk")
        at_broker.publish({"n": n} for n in range(ROWS // 2))
        for _ in range(KILLS):
            killed_at_random(url, tmp_path, chance.uniform(0.0, 1.5))
        at_broker.publish({"n": n} for n in range(ROWS // 2, ROWS))
        source = spark.readStream.format("octopis").option("subscription", "risk")
        frame = source.schema("n LONG, _position LONG").load(url)
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        checkpointed = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        checkpointed.trigger(availableNow=True).start().awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out"))
    sums = found.agg(F.count("n"), F.sum("n"), F.countDistinct("_position"), F.max("_position"))
    assert sums.first()[:] == (ROWS, ROWS * (ROWS - 1) // 2, ROWS, ROWS)
    assert found.where("_position != n + 1").count() == 0
