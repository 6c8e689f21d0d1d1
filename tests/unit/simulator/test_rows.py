from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from octopis.simulator import ledger as rows_module
from octopis.simulator.ledger import Rows
from octopis.simulator.network import Network
from octopis.trace import Level
from octopis.trace.writer import TraceWriter
from support.overlays import CHAIN
from support.simulations import Publishes, Setup, Subscribes, rows, written

SETUP = Setup(subscribers=(Subscribes("c,0"), Subscribes("a,1")), publications=(Publishes("b,0"),))


class Table:
    """Rows, and the trace that they are written to."""

    def __init__(self, folder: Path, writer: TraceWriter) -> None:
        scenario = written(SETUP, folder / "scenario")
        self.rows = Rows(scenario, Network(CHAIN, 0, exact=False), writer)
        self.writer = writer

    def read(self, name: str) -> list[dict[str, object]]:
        self.rows.flush()
        self.writer.close()
        return rows(self.writer.folder, name)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with TraceWriter(tmp_path / "trace", Level.FULL) as writer:
        yield Table(tmp_path, writer)


def test_numbers_become_names_when_they_are_written(table: Table):
    table.rows.add("stored", (1, 3, 17, 2))
    assert table.read("stored") == [
        {"subscription": "s1", "broker": "b,0", "stored_ns": 17, "hops": 2}
    ]


def test_both_ends_of_a_link_are_named_as_brokers(table: Table):
    table.rows.add("links", (0, 8, 1, 5, 6, 7, 8, 9, 10, 11))
    (row,) = table.read("links")
    assert (row["source"], row["target"], row["link_kind"]) == ("a,0", "c,2", "iCOL")


def test_nothing_is_null_as_a_name_and_as_a_number(table: Table):
    nothing = None
    table.rows.add(
        "ims", (0, 3, 0, 1, nothing, nothing, 1, 5, nothing, 0, nothing, nothing, 0, 1, 2)
    )
    (row,) = table.read("ims")
    assert (row["publisher"], row["sequence"], row["left_ns"], row["cbv_p"]) == (None,) * 4
    assert (row["message"], row["subscription"], row["fate"]) == ("subscription", "s1", "cut")
    assert row["reason"] == "subscription"


def test_columns_are_written_as_rows_are(table: Table):
    numbers = np.array([0, 1, 1])
    columns = {
        "subscription": numbers,
        "broker": numbers + 3,
        "stored_ns": numbers,
        "hops": numbers,
    }
    table.rows.write("stored", columns)
    assert [row["broker"] for row in table.read("stored")] == ["b,0", "b,1", "b,1"]


def test_rows_keep_their_order(table: Table):
    for time in (5, 3, 9):
        table.rows.add("stored", (0, 0, time, 0))
    assert [row["stored_ns"] for row in table.read("stored")] == [5, 3, 9]


def test_rows_do_not_pile_up(table: Table, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rows_module, "ROWS", 3)
    for time in range(7):
        table.rows.add("stored", (0, 0, time, 0))
    table.writer.close()  # without the last, which waits for more
    assert pq.read_metadata(table.writer.folder / "stored.parquet").num_rows == 6


def test_trace_of_a_lower_level_wants_fewer_tables(tmp_path: Path):
    with TraceWriter(tmp_path / "trace", Level.SUMMARY) as writer:
        table = Table(tmp_path, writer)
        assert table.rows.wanted("links")
        assert not table.rows.wanted("deliveries")
