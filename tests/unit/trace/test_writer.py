from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.errors import InvalidConfiguration
from octopis.trace import writer as writing
from octopis.trace.schemas import NAME, SCHEMAS
from octopis.trace.summary import Level
from octopis.trace.writer import TraceWriter
from support.simulations import digests

LIMIT = 100


def stored(first: int, count: int) -> dict[str, list]:
    """Return rows of the table of stored subscriptions, as columns."""
    numbers = range(first, first + count)
    return {
        "subscription": [f"s{number % 7}" for number in numbers],
        "broker": [f"b,{number % 3}" for number in numbers],
        "stored_ns": list(numbers),
        "hops": [number % 5 for number in numbers],
    }


def group_sizes(path: Path) -> list[int]:
    metadata = pq.ParquetFile(path).metadata
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "trace"


@pytest.fixture
def _small_groups(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writing, "ROW_GROUP", LIMIT)


class TestLevels:
    @pytest.mark.parametrize("level", Level)
    def test_level_writes_exactly_its_tables(self, folder: Path, level: Level):
        with TraceWriter(folder, level) as writer:
            wanted = [table for table in SCHEMAS if writer.wants(table)]
        assert set(wanted) == set(level.tables)
        assert {path.name for path in folder.iterdir()} == {f"{name}.parquet" for name in wanted}

    @pytest.mark.parametrize("level", Level)
    def test_trace_without_rows_is_valid(self, folder: Path, level: Level):
        with TraceWriter(folder, level):
            pass
        for name in level.tables:
            table = pq.read_table(folder / f"{name}.parquet")
            assert table.num_rows == 0
            assert table.schema.equals(SCHEMAS[name])


class TestRows:
    def test_rows_read_back_in_their_order(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer:
            for first in range(0, 60, 20):
                writer.write("stored", stored(first, 20))
        assert pq.read_table(folder / "stored.parquet").to_pydict() == stored(0, 60)

    def test_column_that_is_not_given_is_null(self, folder: Path):
        columns = SCHEMAS["ims"].names
        with TraceWriter(folder, Level.FULL) as writer:
            writer.write("ims", {"message": ["sync", "sync"], "left_ns": [1, None]})
            writer.write("ims", {"message": ["notification"], "publisher": ["p1"]})
        rows = pq.read_table(folder / "ims.parquet").to_pylist()
        empty = dict.fromkeys(columns)
        assert rows == [
            empty | {"message": "sync", "left_ns": 1},
            empty | {"message": "sync"},
            empty | {"message": "notification", "publisher": "p1"},
        ]

    def test_names_with_their_own_dictionaries_come_together(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer:
            for names in (["a", "b"], ["c", "b"]):
                numbers = pa.array([1, 0, None], pa.int32())
                column = pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string()))
                writer.write("stored", {"broker": column, "stored_ns": [1, 2, 3]})
        read = pq.read_table(folder / "stored.parquet")["broker"]
        assert read.to_pylist() == ["b", "a", None, "b", "c", None]

    def test_no_rows_add_nothing(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer:
            writer.write("stored", stored(0, 0))
        assert group_sizes(folder / "stored.parquet") == []

    def test_unknown_column_is_a_programmers_fault(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer, pytest.raises(AssertionError):
            writer.write("stored", {"stored_ns": [1], "stored_ms": [1]})

    def test_table_of_another_level_is_a_programmers_fault(self, folder: Path):
        with TraceWriter(folder, Level.SUMMARY) as writer, pytest.raises(KeyError):
            writer.write("stored", stored(0, 1))

    def test_strings_are_readable_as_strings_by_a_plain_parquet_reader(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer:
            writer.write("stored", stored(0, 10))
        file = pq.ParquetFile(folder / "stored.parquet")
        for place, field in enumerate(SCHEMAS["stored"]):
            column = file.schema.column(place)
            assert (column.logical_type.type == "STRING") == (field.type == NAME)
        assert file.read()["broker"].to_pylist() == stored(0, 10)["broker"]


@pytest.mark.usefixtures("_small_groups")
class TestRowGroups:
    def test_rows_are_on_disk_before_the_trace_is_closed(self, folder: Path):
        path = folder / "stored.parquet"
        with TraceWriter(folder, Level.FULL) as writer:
            writer.write("stored", stored(0, LIMIT - 1))
            before = path.stat().st_size
            writer.write("stored", stored(LIMIT - 1, 1))
            assert path.stat().st_size > before

    def test_rows_that_wait_never_exceed_the_limit(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer:
            table = writer._tables["stored"]
            for first in range(0, 1_000, 30):
                writer.write("stored", stored(first, 30))
                assert sum(batch.num_rows for batch in table._waiting) < LIMIT
        assert group_sizes(folder / "stored.parquet") == [120] * 8 + [60]
        assert pq.read_table(folder / "stored.parquet")["stored_ns"].to_pylist() == [*range(1_020)]

    def test_more_rows_than_the_limit_at_once_do_not_wait(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer:
            writer.write("stored", stored(0, 10 * LIMIT))
            assert not writer._tables["stored"]._waiting
        assert sum(group_sizes(folder / "stored.parquet")) == 10 * LIMIT

    def test_tables_wait_apart_from_each_other(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer:
            writer.write("stored", stored(0, LIMIT - 1))
            writer.write("queues", {"queue_length": [1] * LIMIT})
        assert group_sizes(folder / "stored.parquet") == [LIMIT - 1]
        assert group_sizes(folder / "queues.parquet") == [LIMIT]


def test_memory_does_not_grow_with_the_length_of_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writing, "ROW_GROUP", 5_000)
    held = []
    with TraceWriter(folder, Level.FULL) as writer:
        for number in range(60):
            writer.write("stored", stored(number * 1_000, 1_000))
            held.append(pa.total_allocated_bytes())
    assert max(held[-15:]) <= 1.5 * max(held[:15])


class TestClosing:
    def test_closing_twice_leaves_what_closing_once_does(self, folder: Path):
        writer = TraceWriter(folder, Level.FULL)
        writer.write("stored", stored(0, 10))
        writer.close()
        once = digests(folder)
        writer.close()
        assert digests(folder) == once
        assert pq.read_table(folder / "stored.parquet").num_rows == 10

    def test_error_on_the_way_leaves_valid_files(self, folder: Path):
        with suppress(RuntimeError), TraceWriter(folder, Level.FULL) as writer:
            writer.write("stored", stored(0, 10))
            raise RuntimeError
        assert pq.read_table(folder / "stored.parquet").num_rows == 10
        assert pq.read_table(folder / "ims.parquet").num_rows == 0


class TestDiscarding:
    @pytest.mark.parametrize("level", Level)
    def test_discarded_trace_leaves_nothing(self, folder: Path, level: Level):
        with TraceWriter(folder, level) as writer:
            writer.discard()
            assert not folder.exists()
        assert list(folder.parent.iterdir()) == []

    def test_rows_are_discarded_too(self, folder: Path):
        with TraceWriter(folder, Level.FULL) as writer:
            writer.write("stored", stored(0, 10))
            writer.discard()
            assert not writer.wants("stored")
        assert not folder.exists()

    def test_folder_may_be_written_to_again(self, folder: Path):
        TraceWriter(folder, Level.FULL).discard()
        with TraceWriter(folder, Level.FULL) as writer:
            writer.write("stored", stored(0, 10))
        assert pq.read_table(folder / "stored.parquet").num_rows == 10


class TestRepeats:
    def write(self, folder: Path, *, seed: int) -> dict[str, str]:
        with TraceWriter(folder, Level.FULL) as writer:
            for first in range(seed, seed + 500, 50):
                writer.write("stored", stored(first, 50))
                writer.write(
                    "queues", {"source": ["b,1"] * 50, "q_in": [*range(first, first + 50)]}
                )
        return digests(folder)

    @pytest.mark.usefixtures("_small_groups")
    def test_equal_rows_give_files_that_are_equal_to_the_byte(self, tmp_path: Path):
        one = self.write(tmp_path / "one", seed=0)
        assert self.write(tmp_path / "same", seed=0) == one
        other = self.write(tmp_path / "other", seed=1)
        assert {name for name in one if one[name] != other[name]} == {
            "stored.parquet",
            "queues.parquet",
        }


class TestFolder:
    def test_folder_is_made_with_its_parents(self, folder: Path):
        with TraceWriter(folder, Level.SUMMARY) as writer:
            assert writer.folder == folder
        assert folder.is_dir()

    def test_empty_folder_is_taken(self, tmp_path: Path):
        with TraceWriter(tmp_path, Level.SUMMARY):
            pass
        assert (tmp_path / "links.parquet").exists()

    def test_folder_with_a_colon_in_its_name_is_no_address(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.chdir(tmp_path)
        with TraceWriter(Path("run:1:x"), Level.SUMMARY):
            pass
        assert (tmp_path / "run:1:x" / "links.parquet").exists()

    def test_folder_that_holds_something_is_refused_and_left_alone(self, folder: Path):
        folder.mkdir(parents=True)
        (folder / ".hidden").write_text("keep me")
        with pytest.raises(InvalidConfiguration) as caught:
            TraceWriter(folder, Level.FULL)
        assert str(caught.value) == f"{folder} is not empty: choose another folder, or remove it"
        assert [path.name for path in folder.iterdir()] == [".hidden"]
