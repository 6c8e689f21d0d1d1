import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.errors import InvalidConfiguration
from octopis.scenario.publications import (
    BATCH,
    COLUMNS,
    Publications,
    count_notifications,
    read_publications,
)
from octopis.scenario.tables import TIME_NS_MAX, Publisher
from support.overlays import A0, B2

QUOTE = {"publisher": "nyse", "sequence": 0, "intended_ns": 5, "attributes": {"price": 11.5}}
NEXT = QUOTE | {"sequence": 1}
HERE = [Publisher("nyse", A0, False), Publisher("feed", B2, True)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.parquet"


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def publications(path: Path, *rows: dict[str, Any]) -> list[Publications]:
    write(path, list(rows))
    return read(path)


def read(path: Path) -> list[Publications]:
    """Read a table as a run does: first how many there are, then all of them."""
    count = count_notifications(path)
    found = list(read_publications(path, HERE))
    assert sum(len(batch.publishers) for batch in found) == count
    return found


def with_column(path: Path, name: str, values: pa.Array) -> None:
    """Write a table of which one column holds something else."""
    rows = [QUOTE | {"sequence": number} for number in range(len(values))]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table.set_column(table.column_names.index(name), name, values), path)


def refusal(read, *arguments) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        read(*arguments)
    return str(caught.value)


class TestRows:
    def test_rows_come_in_columns_with_publishers_as_numbers(self, path: Path):
        later = {"publisher": "feed", "sequence": 3, "intended_ns": 7, "attributes": {"price": 2.0}}
        (batch,) = publications(path, QUOTE, later)
        assert batch.publishers == [0, 1]
        assert batch.sequences == [0, 3]
        assert batch.intended_ns == [5, 7]
        assert batch.attributes == [{"price": 11.5}, {"price": 2.0}]

    def test_notifications_come_in_batches_in_their_order(self, path: Path):
        count = 2 * BATCH + 1
        rows = [QUOTE | {"sequence": number, "intended_ns": number} for number in range(count)]
        batches = publications(path, *rows)
        assert [len(batch.publishers) for batch in batches] == [BATCH, BATCH, 1]
        assert [each for batch in batches for each in batch.sequences] == list(range(count))

    def test_empty_table_has_no_notifications(self, path: Path):
        attributes = pa.struct([("price", pa.float64())])
        write(path, [], pa.schema([*COLUMNS.items(), ("attributes", attributes)]))
        assert list(read_publications(path, HERE)) == []
        assert count_notifications(path) == 0

    def test_rows_are_counted(self, path: Path):
        write(path, [QUOTE] * 7)
        assert count_notifications(path) == 7

    def test_further_columns_are_ignored(self, path: Path):
        assert publications(path, {"note": 1, **QUOTE}) == publications(path, QUOTE)

    def test_strings_may_be_dictionary_encoded_and_integers_small(self, path: Path):
        wanted = publications(path, QUOTE, NEXT)
        name = pa.dictionary(pa.int32(), pa.string())
        columns = {"publisher": name, "sequence": pa.int8(), "intended_ns": pa.uint16()}
        attributes = pa.struct([("price", pa.float32())])
        write(path, [QUOTE, NEXT], pa.schema([*columns.items(), ("attributes", attributes)]))
        assert read(path) == wanted

    @pytest.mark.parametrize("column", [*COLUMNS, "attributes"])
    def test_missing_column_is_named(self, path: Path, column: str):
        row = {name: value for name, value in QUOTE.items() if name != column}
        message = refusal(publications, path, row)
        assert message == f"{path}: the column {column} is missing"

    @pytest.mark.parametrize("column", COLUMNS)
    def test_null_is_refused_with_its_row(self, path: Path, column: str):
        message = refusal(publications, path, QUOTE, NEXT | {column: None})
        assert message == f"{path}, row 1: only attributes may be empty"

    @pytest.mark.parametrize("column", COLUMNS)
    def test_column_of_nulls_alone_is_refused(self, path: Path, column: str):
        with_column(path, column, pa.nulls(3, COLUMNS[column]))
        assert refusal(read, path) == f"{path}, row 0: only attributes may be empty"

    @pytest.mark.parametrize("column", ["sequence", "intended_ns"])
    @pytest.mark.parametrize("value", ["5", 5.0, 0.5, True])
    def test_number_that_is_no_integer_is_refused(self, path: Path, column: str, value: Any):
        values = pa.array([value])
        with_column(path, column, values)
        assert refusal(read, path) == f"{path}: {column} must be of type int64, not {values.type}"

    @pytest.mark.parametrize("column", ["sequence", "intended_ns"])
    def test_integer_of_more_than_63_bits_is_refused(self, path: Path, column: str):
        with_column(path, column, pa.array([2**64 - 1], pa.uint64()))
        assert refusal(read, path).startswith(f"{path}, after row 0: ")

    def test_publisher_that_is_a_number_with_a_fraction_is_refused(self, path: Path):
        with_column(path, "publisher", pa.array([0.5]))
        assert refusal(read, path) == f"{path}: publisher must be of type string, not double"

    def test_publisher_that_is_not_there_is_refused_with_its_row(self, path: Path):
        message = refusal(publications, path, QUOTE, NEXT | {"publisher": "nasdaq"})
        assert message == f"{path}, row 1: there is no publisher 'nasdaq'"


class TestTimes:
    def test_times_may_be_equal_and_begin_at_zero(self, path: Path):
        (batch,) = publications(path, QUOTE | {"intended_ns": 0}, NEXT | {"intended_ns": 0})
        assert batch.intended_ns == [0, 0]

    @pytest.mark.parametrize("time_ns", [4, -1])
    def test_time_that_falls_is_refused_with_its_row(self, path: Path, time_ns: int):
        message = refusal(publications, path, QUOTE, NEXT | {"intended_ns": time_ns})
        assert message == f"{path}, row 1: intended_ns must not fall"

    def test_time_before_the_beginning_is_refused(self, path: Path):
        message = refusal(publications, path, QUOTE | {"intended_ns": -1})
        assert message.startswith(f"{path}, row 0: intended_ns ")

    def test_time_that_falls_between_two_batches_is_refused_with_its_row(self, path: Path):
        rows = [QUOTE | {"sequence": number} for number in range(BATCH)]
        rows.append(QUOTE | {"sequence": BATCH, "intended_ns": 4})
        message = refusal(publications, path, *rows)
        assert message == f"{path}, row {BATCH}: intended_ns must not fall"

    def test_last_time_is_taken(self, path: Path):
        (batch,) = publications(path, QUOTE, NEXT | {"intended_ns": TIME_NS_MAX})
        assert batch.intended_ns == [5, TIME_NS_MAX]

    @pytest.mark.parametrize("time_ns", [TIME_NS_MAX + 1, 2**63 - 1])
    def test_time_that_no_run_reaches_is_refused_with_its_row(self, path: Path, time_ns: int):
        message = refusal(publications, path, QUOTE, NEXT | {"intended_ns": time_ns})
        limits = "intended_ns must be from 0 to 100,000,000,000,000,000"
        assert message == f"{path}, row 1: {limits}, not {time_ns:,}"


class TestSequences:
    def test_numbers_may_begin_anywhere_and_leave_gaps(self, path: Path):
        rows = [QUOTE | {"sequence": number} for number in (-3, 0, 7, 2**62)]
        (batch,) = publications(path, *rows)
        assert batch.sequences == [-3, 0, 7, 2**62]

    def test_publishers_count_apart_from_each_other(self, path: Path):
        tick = QUOTE | {"publisher": "feed"}
        (batch,) = publications(path, QUOTE, tick, NEXT, tick | {"sequence": 1})
        assert batch.sequences == [0, 0, 1, 1]

    @pytest.mark.parametrize("number", [1, 0, -1])
    def test_number_that_does_not_rise_is_refused_with_its_row(self, path: Path, number: int):
        message = refusal(publications, path, QUOTE, NEXT, QUOTE | {"sequence": number})
        assert message == f"{path}, row 2: the sequence of nyse must rise"

    def test_number_that_was_in_another_batch_is_refused_with_its_row(self, path: Path):
        rows = [QUOTE | {"sequence": number} for number in range(BATCH)]
        message = refusal(publications, path, *rows, QUOTE | {"sequence": BATCH - 1})
        assert message == f"{path}, row {BATCH}: the sequence of nyse must rise"


class TestAttributes:
    def test_null_attribute_is_absent(self, path: Path):
        quote = QUOTE | {"attributes": {"symbol": "S1", "price": None}}
        tick = QUOTE | {"sequence": 1, "attributes": {"symbol": None, "price": 2.0}}
        nothing = QUOTE | {"sequence": 2, "attributes": {"symbol": None, "price": None}}
        (batch,) = publications(path, quote, tick, nothing)
        assert batch.attributes == [{"symbol": "S1"}, {"price": 2.0}, {}]

    def test_value_that_is_false_in_python_is_no_null(self, path: Path):
        attributes = {"count": 0, "share": 0.0, "open": False, "note": ""}
        (batch,) = publications(path, QUOTE | {"attributes": attributes})
        assert batch.attributes == [attributes]

    def test_null_in_place_of_attributes_is_a_notification_without_any(self, path: Path):
        (batch,) = publications(path, QUOTE, NEXT | {"attributes": None})
        assert batch.attributes == [{"price": 11.5}, {}]

    def test_texts_may_be_dictionary_encoded(self, path: Path):
        symbols = pa.array(["S1", None, "S1"]).dictionary_encode()
        with_column(path, "attributes", pa.StructArray.from_arrays([symbols], ["symbol"]))
        (batch,) = read(path)
        assert batch.attributes == [{"symbol": "S1"}, {}, {"symbol": "S1"}]

    @pytest.mark.parametrize("values", [[1], ["price"], [[1]]])
    def test_attributes_that_are_no_struct_are_refused(self, path: Path, values: list):
        with_column(path, "attributes", pa.array(values))
        kind = pq.read_schema(path).field("attributes").type
        message = refusal(count_notifications, path)
        assert message == f"{path}: attributes must be a struct, not {kind}"

    @pytest.mark.parametrize("value", [[1], b"x", {"inner": 1}])
    def test_attribute_of_another_type_is_refused_with_its_name(self, path: Path, value: Any):
        with_column(path, "attributes", pa.array([{"price": 1.0, "open": value}]))
        kind = pq.read_schema(path).field("attributes").type.field("open").type
        assert refusal(count_notifications, path) == (
            f"{path}: the attribute open is of type {kind}; "
            "attributes are texts, integers, floats and booleans"
        )

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("row", [0, 2, BATCH + 1])
    def test_float_that_is_not_finite_is_refused_with_its_row(
        self, path: Path, value: float, row: int
    ):
        rows = [QUOTE | {"sequence": number} for number in range(BATCH + 2)]
        rows[1] |= {"attributes": {"price": None}}
        rows[row] |= {"attributes": {"price": value}}
        assert refusal(publications, path, *rows) == (
            f"{path}, row {row}: price is {value}, which compares with nothing: leave it empty"
        )


READERS = {"count": count_notifications, "notifications": read}


class TestParts:
    def test_folder_of_parts_is_read_in_the_order_of_names(self, path: Path):
        path.mkdir()
        write(path / "part-1.parquet", [QUOTE | {"sequence": 2, "intended_ns": 6}])
        write(path / "part-0.parquet", [QUOTE, NEXT])
        (path / "_SUCCESS").touch()
        assert [batch.sequences for batch in read(path)] == [[0, 1], [2]]

    def test_row_that_does_not_follow_the_part_before_is_named(self, path: Path):
        path.mkdir()
        write(path / "part-0.parquet", [QUOTE, NEXT])
        write(path / "part-1.parquet", [QUOTE])
        part = path / "part-1.parquet"
        assert refusal(read, path) == f"{part}, row 0: the sequence of nyse must rise"

    def test_part_with_other_columns_is_named(self, path: Path):
        path.mkdir()
        write(path / "part-0.parquet", [QUOTE])
        write(path / "part-1.parquet", [NEXT | {"attributes": {"size": 1}}])
        reason = f"{path / 'part-1.parquet'} has other columns than {path / 'part-0.parquet'}"
        assert refusal(read, path) == reason


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
class TestFiles:
    def test_missing_file_is_named(self, path: Path, read):
        assert refusal(read, path) == f"there is no {path}"

    @pytest.mark.parametrize("content", [b"", b"PAR1", b"publisher,sequence\n" * 10])
    def test_file_that_is_no_parquet_is_refused(self, path: Path, read, content: bytes):
        path.write_bytes(content)
        assert refusal(read, path).startswith(f"{path} is not a Parquet file: ")

    def test_file_that_was_cut_short_is_refused(self, path: Path, read):
        write(path, [QUOTE])
        path.write_bytes(path.read_bytes()[:-20])
        assert refusal(read, path).startswith(f"{path} is not a Parquet file: ")

    def test_folder_is_refused(self, path: Path, read):
        path.mkdir()
        assert refusal(read, path) == f"{path} holds no part of a table"

    def test_name_with_a_colon_is_no_address(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read
    ):
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "run:1.parquet", [QUOTE])
        assert read(Path("run:1.parquet"))


def test_file_with_damaged_pages_is_refused(path: Path):
    write(path, [QUOTE | {"sequence": number} for number in range(2 * BATCH)])
    content = bytearray(path.read_bytes())
    for place in range(20, len(content) // 2):  # the rows, not what says where they are
        content[place] ^= 0xFF
    path.write_bytes(content)
    assert refusal(read, path).startswith(f"{path}, after row ")
