"""How far work is, looked at while it goes on, and told to whoever shows it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from octopis.pipeline.spark.session import is_connect

OnProgress = Callable[[int, int], None]
"""Told how many tasks of how many are done in the stages that run now."""

_EVERY_S = 0.2


@contextmanager
def meanwhile(look: Callable[[], None], every_s: float) -> Iterator[None]:
    """Call `look` every so often from a thread of its own, until what is done meanwhile ends."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every_s):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


@contextmanager
def watched(spark: SparkSession, on_progress: OnProgress) -> Iterator[None]:
    """Tell `on_progress` a few times a second how far the running stages are."""
    if is_connect(spark):
        # The server counts for us; there is nothing to poll on this side.
        spark.registerProgressHandler(_handler(on_progress))
        try:
            yield
        finally:
            spark.clearProgressHandlers()
        return
    tracker = spark.sparkContext.statusTracker()

    def look() -> None:
        stages = []
        with suppress(Py4JError, OSError):  # the session is being stopped
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        found = [stage for stage in stages if stage is not None]
        if found:
            on_progress(sum(s.numCompletedTasks for s in found), sum(s.numTasks for s in found))

    with meanwhile(look, _EVERY_S):
        yield


def _handler(on_progress: OnProgress) -> Any:
    def handle(*, stages: Any = (), **_rest: object) -> None:
        running = list(stages or ())
        on_progress(
            sum(stage.num_completed_tasks for stage in running),
            sum(stage.num_tasks for stage in running),
        )

    return handle
