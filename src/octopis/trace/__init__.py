"""What a run leaves behind: Parquet tables and a summary, the same from simulator and brokers.

`TraceWriter` stands apart in `trace.writer`: it loads Arrow, which a broker without a trace does
not need.
"""

from octopis.trace.summary import Level, RunSummary, read_summary, write_summary

__all__ = ["Level", "RunSummary", "read_summary", "write_summary"]
