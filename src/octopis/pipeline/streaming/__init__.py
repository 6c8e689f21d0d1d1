"""Spark reads the overlay: `spark.readStream.format("octopis")`, and `spark.read` too."""

from octopis.pipeline.streaming.measures import progress

__all__ = ["progress"]
