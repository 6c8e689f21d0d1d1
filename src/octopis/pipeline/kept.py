"""Frames that are used more than once, kept by Spark meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Have Spark keep a frame once it is computed, and forget it in the end."""
    frame.persist()
    try:
        yield frame
    finally:
        with suppress(Py4JError, PySparkException, OSError):  # a Spark that is gone keeps nothing
            frame.unpersist()
