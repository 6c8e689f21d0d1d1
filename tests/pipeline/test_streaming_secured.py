"""An overlay with security: Spark reads and publishes there by its credentials."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octopis.broker.settings import Durability
from octopis.core.routing import Algorithm
from octopis.pipeline.spark.session import sentence
from octopis.pipeline.streaming import progress
from support.durable_disk import desk
from support.live import in_a_thread, line
from support.secure import Folder

_WANTED = "kind = 'in' AND n >= 0"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of a broker with a disk, and a file of credentials."""
    folder = Folder(tmp_path / "security", line(1))
    durability = Durability(str(tmp_path / "disk"))
    configuration = folder.overlay(line(1), algorithm=Algorithm.TNR, durability=durability)
    with in_a_thread(configuration) as urls:
        yield urls["a,0"], str(folder.files.credentials("alice"))


def test_a_durable_source_and_a_staged_sink_log_in(
    spark: SparkSession, secured: tuple[str, str], tmp_path: Path
):
    url, credentials = secured
    with desk(url, credentials=credentials) as alice:
        alice.make("risk", _WANTED)
        alice.make("alerts", "kind = 'out'")

        def run(**more: str) -> Any:
            said = {"address": url, **more}
            source = spark.readStream.format("octopis").options(**said, subscription="risk")
            frame = source.schema("n LONG").load().selectExpr("'out' AS kind", "2 * n AS twice")
            sink = frame.writeStream.format("octopis").options(**said)
            sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint"))
            query = sink.trigger(availableNow=True).start()
            query.awaitTermination()
            return query

        alice.publish({"kind": "in", "n": n} for n in range(10))
        with pytest.raises(PySparkException) as failure:
            run()
        assert "speaks TLS alone" in sentence(failure.value)
        (seen,) = progress(run(credentialsFile=credentials))
        assert (seen.subscription, seen.rows, seen.missing) == ("risk", 10, 0)
        for file in (tmp_path / "checkpoint" / "commits").iterdir():  # as if its driver had died
            file.unlink()
        alice.publish([{"kind": "in", "n": 10}])
        run(credentialsFile=credentials)
        assert sorted(each["twice"] for each in alice.read("alerts", 11)) == list(range(0, 22, 2))
        reader = spark.read.format("octopis").options(credentialsFile=credentials)
        assert reader.option("subscription", "alerts").load(url).count() == 11
