"""The parts of `octopis bench pipeline`: each can be measured alone."""

from enum import StrEnum


class Part(StrEnum):
    """What is measured; apart from the benchmark itself, so that naming one loads no Spark."""

    INGEST = "ingest"
    TRUTH = "truth"
    METRICS = "metrics"
    READINGS = "readings"
    STREAMING = "streaming"
    SWEEP = "sweep"
