import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.scenario.folder import FILES
from octopis.trace import read_summary
from support.sim_command import SMALL, edit, refused


class TestBadScenario:
    def test_folder_that_is_not_there(self, sim):
        assert refused(sim, "run", "nowhere") == (
            "there is no nowhere/scenario.toml; make a scenario with octopis sim example"
        )

    @pytest.mark.parametrize("name", FILES)
    def test_folder_without_one_of_the_files(self, sim, example, name: str):
        example(*SMALL)
        (Path("scenario") / name).unlink()
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence.startswith(f"there is no scenario/{name}")
        assert not Path("trace").exists()

    def test_unknown_key_is_refused_with_the_nearest_known_one(self, sim, example):
        example(*SMALL, "--slow", "a,0:b,0:2:0:5")
        edit("factor", "facotr")
        assert refused(sim, "run", "scenario") == (
            "scenario/scenario.toml: unknown key 'slow_links[0].facotr'; did you mean 'factor'?"
        )

    def test_table_that_is_no_parquet(self, sim, example):
        example(*SMALL)
        Path("scenario/publishers.parquet").write_text("publisher,broker,high_rate\n")
        sentence = refused(sim, "run", "scenario")
        assert sentence.startswith("scenario/publishers.parquet is not a Parquet file: ")

    def test_notifications_out_of_order_are_refused_with_their_row(self, sim, example):
        example(*SMALL)
        path = Path("scenario/notifications.parquet")
        rows = pq.read_table(path)
        pq.write_table(pa.concat_tables([rows.slice(1), rows.slice(0, 1)]), path)
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence == f"{path}, row 59: intended_ns must not fall"

    @pytest.mark.parametrize(
        ("column", "values", "message"),
        [
            ("sequence", pa.nulls(60, pa.int64()), ", row 0: only attributes may be empty"),
            ("sequence", pa.array(["x"] * 60), ": sequence must be of type int64, not string"),
            ("intended_ns", pa.array([0.5] * 60), ": intended_ns must be of type int64, not"),
            ("intended_ns", pa.array([2**63 - 1] * 60), ", row 0: intended_ns must be from 0 to"),
            ("attributes", pa.array([1] * 60), ": attributes must be a struct, not int64"),
            ("attributes", pa.array([{"open": b"x"}] * 60), ": the attribute open is of type bin"),
            ("attributes", pa.array([{"open": math.nan}] * 60), ", row 0: open is nan, which"),
        ],
    )
    def test_column_that_makes_no_sense_is_refused_and_no_trace_passes_for_whole(
        self, sim, example, column: str, values: pa.Array, message: str
    ):
        example(*SMALL)
        path = Path("scenario/notifications.parquet")
        table = pq.read_table(path)
        place = table.column_names.index(column)
        pq.write_table(table.set_column(place, column, values), path)
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence.startswith(f"{path}{message}")
        if Path("trace").exists():
            summary = read_summary(Path("trace"))
            assert (summary.state, summary.reason) == ("partial", sentence)

    def test_number_that_comes_twice_is_refused_with_its_row(self, sim, example):
        example(*SMALL, "--publishers", "1")
        path = Path("scenario/notifications.parquet")
        table = pq.read_table(path)
        pq.write_table(table.set_column(1, "sequence", pa.array([0] * 20)), path)
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence == f"{path}, row 1: the sequence of p0000 must rise"

    @pytest.mark.parametrize("name", ["subscriptions", "publishers"])
    def test_client_at_a_broker_that_is_not_there_is_refused_with_its_row(
        self, sim, example, name: str
    ):
        example(*SMALL)
        path = Path(f"scenario/{name}.parquet")
        rows = [row | {"broker": "z,0"} for row in pq.read_table(path).to_pylist()]
        pq.write_table(pa.Table.from_pylist(rows), path)
        sentence = refused(sim, "run", "scenario", "--out", "trace")
        assert sentence.startswith(f"{path}, row 0: ")
        assert "names 'z'" in sentence

    @pytest.mark.parametrize("name", ["subscriptions", "notifications"])
    def test_table_with_damaged_pages_is_refused(self, sim, example, name: str):
        example("--subscribers", "300", "--publishers", "3", "--notifications", "300")
        path = Path(f"scenario/{name}.parquet")
        content = bytearray(path.read_bytes())
        for place in range(20, len(content) // 2):
            content[place] ^= 0xFF
        path.write_bytes(content)
        assert refused(sim, "run", "scenario", "--out", "trace").startswith(str(path))
