"""Everything dies while Spark reads a stream and writes it back, and every row is there once."""

from octopis.benchmarks.spark.streaming_kills import Plan, run


def test_rows_are_read_and_written_once_whatever_dies():
    said: list[str] = []
    found = run(Plan(20_000, drivers=2, brokers=1, workers=1, seed=7), said.append)
    assert [line for line in said if line.startswith("killed")].count("killed a driver") == 2
    assert found.table == found.wanted
    assert found.written == found.wanted
    assert found.is_exact
