"""How far Spark is, told to whoever shows it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from octopis.pipeline.spark.session import is_connect

Told = Callable[[int, int], None]
"""Told how many tasks of how many are done in the stages that run now."""

_EVERY_S = 0.2


@contextmanager
def watched(spark: SparkSession, told: Told) -> Iterator[None]:
    """Tell `told` a few times a second how far the running stages are."""
    if is_connect(spark):
        # The server counts for us; there is nothing to poll on this side.
        spark.registerProgressHandler(_handler(told))
        try:
            yield
        finally:
            spark.clearProgressHandlers()
        return
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, told, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(spark: SparkSession, told: Told, ended: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not ended.wait(_EVERY_S):
        try:
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        except Py4JError:
            return  # the session is being stopped
        found = [stage for stage in stages if stage is not None]
        if found:
            told(sum(s.numCompletedTasks for s in found), sum(s.numTasks for s in found))


def _handler(told: Told) -> Any:
    def handle(*, stages: Any = (), **_rest: object) -> None:
        running = list(stages or ())
        told(
            sum(stage.num_completed_tasks for stage in running),
            sum(stage.num_tasks for stage in running),
        )

    return handle
