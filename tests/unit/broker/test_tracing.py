from pathlib import Path

import pyarrow.parquet as pq
import pytest

from octopis.broker.tracing import ROW_GROUP, TraceOptions, Tracing
from octopis.errors import InvalidConfiguration
from octopis.trace import Level
from support.live import line

A, B = line(2).brokers


def stored(number: int) -> tuple[object, ...]:
    return (f"s{number % 7}", "a,0", number, None)


def test_rows_are_written_in_groups_while_the_broker_runs(tmp_path: Path):
    count = 2 * ROW_GROUP + 500
    with Tracing(TraceOptions(tmp_path / "trace", Level.FULL), [A, B]) as tracing:
        for start in range(0, count, 1_000):
            tracing.add(A, "stored", [stored(n) for n in range(start, min(count, start + 1_000))])
    file = pq.ParquetFile(tmp_path / "trace" / "a,0" / "stored.parquet")
    assert file.metadata.num_row_groups == 3
    assert file.read().column("stored_ns").to_pylist() == list(range(count))
    assert pq.read_table(tmp_path / "trace" / "b,0" / "stored.parquet").num_rows == 0


def test_folder_that_holds_something_is_refused(tmp_path: Path):
    (tmp_path / "a,0").mkdir()
    (tmp_path / "a,0" / "run.json").touch()
    with pytest.raises(InvalidConfiguration, match="is not empty"):
        Tracing(TraceOptions(tmp_path), [A])


def test_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidConfiguration, match=r"cannot write to .*: Not a directory"):
        Tracing(TraceOptions(tmp_path / "file"), [A])


def test_write_that_fails_ends_the_trace_and_not_the_broker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with Tracing(TraceOptions(tmp_path / "trace", Level.FULL), [A]) as tracing:
        tracing.add(A, "stored", [("s", "a,0", "no time", None)])
        tracing.add(A, "stored", [stored(1)])
    assert "the trace ends here, the brokers go on" in caplog.text
    assert "2 rows were not written" in caplog.text
    assert not (tmp_path / "trace" / "a,0" / "run.json").exists()
