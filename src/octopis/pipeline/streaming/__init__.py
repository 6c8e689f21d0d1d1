"""Spark reads the overlay: `spark.readStream.format("octopis")`, and `spark.read` too."""

from octopis.pipeline.spark.saying import mark_logs
from octopis.pipeline.streaming.measures import progress

mark_logs(__name__)

__all__ = ["progress"]
