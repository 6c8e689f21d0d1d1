"""What a run leaves behind: Parquet tables and a summary, the same from simulator and brokers."""

from octopis.trace.summary import Level, RunSummary, read_summary, write_summary
from octopis.trace.writer import TraceWriter

__all__ = ["Level", "RunSummary", "TraceWriter", "read_summary", "write_summary"]
