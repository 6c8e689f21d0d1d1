"""What makes Spark find `format("octopis")` by its name, without registering anything.

Spark imports every module whose name begins with pyspark_: so this one brings in next to nothing,
and what is missing is said when the format is used.
"""

from octopis.pipeline.streaming.source import OctopisSource as DefaultSource

__all__ = ["DefaultSource"]
