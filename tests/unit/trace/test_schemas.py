from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.trace import schemas
from octopis.trace.schemas import NAME, SCHEMAS

TABLES = pytest.mark.parametrize("table", SCHEMAS)


@TABLES
def test_every_table_is_explained_at_the_top_of_the_file(table: str):
    explained = [line.split()[0] for line in (schemas.__doc__ or "").splitlines() if line]
    assert table in explained


@TABLES
def test_no_column_stands_twice(table: str):
    assert len(set(SCHEMAS[table].names)) == len(SCHEMAS[table].names)


@TABLES
def test_times_are_whole_nanoseconds_of_64_bits(table: str):
    times = [field for field in SCHEMAS[table] if field.name.endswith("_ns")]
    assert all(field.type == pa.int64() for field in times)


@TABLES
def test_column_of_names_has_names_in_every_table(table: str):
    names = {field.name for schema in SCHEMAS.values() for field in schema if field.type == NAME}
    assert all((field.type == NAME) == (field.name in names) for field in SCHEMAS[table])


@pytest.mark.parametrize("table", ["publications", "deliveries", "ims"])
def test_notification_is_known_by_publisher_and_sequence(table: str):
    assert SCHEMAS[table].field("publisher").type == NAME
    assert SCHEMAS[table].field("sequence").type == pa.int64()


def test_message_tells_link_kind_queue_and_reason():
    wanted = {"source", "target", "link_kind", "queue_length", "cbv_p", "reason"}
    assert wanted <= set(SCHEMAS["ims"].names)


@TABLES
def test_names_are_strings_to_a_plain_parquet_reader(table: str, tmp_path: Path):
    path = tmp_path / "table.parquet"
    pq.write_table(SCHEMAS[table].empty_table(), path)
    columns = pq.ParquetFile(path).schema
    for place, field in enumerate(SCHEMAS[table]):
        is_text = field.type in (NAME, pa.string())
        assert (columns.column(place).logical_type.type == "STRING") == is_text
        assert (columns.column(place).physical_type == "BYTE_ARRAY") == is_text
