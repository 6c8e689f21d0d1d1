"""Notifications as columns: what fits, what does not, and that both ways of decoding agree."""

import datetime as dt
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from octopis.core.wire.durable import encode_batch
from octopis.core.wire.published import encode_published
from octopis.errors import InvalidConfiguration, InvalidNotification, ProtocolError
from octopis.pipeline.streaming.columns import Columns, every_column
from octopis.pipeline.streaming.options import Mode

KINDS = {
    "string": T.StringType(),
    "boolean": T.BooleanType(),
    "byte": T.ByteType(),
    "short": T.ShortType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
}


def schema(**columns: Any) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in columns.items()])


def body(*rows: dict[str, Any]) -> bytes:
    positions = range(1, len(rows) + 1)
    bodies = [
        encode_published(row, b"p", "quotes", at + 10, 1_700_000_000_123_456_789)
        for at, row in zip(positions, rows, strict=True)
    ]
    return encode_batch(5, 7, 0, len(rows), positions, bodies)[5:]


def table(columns: Columns, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    return columns.rows(body(*rows), 100).batch.to_pylist()


def test_attributes_come_by_name_and_absent_ones_are_null():
    columns = Columns(schema(price=T.DoubleType(), symbol=T.StringType()), Mode.FAILFAST)
    rows = table(columns, {"price": 1, "symbol": "A", "more": True}, {"symbol": "B"})
    assert rows == [{"price": 1.0, "symbol": "A"}, {"price": None, "symbol": "B"}]


def test_metadata_comes_only_where_it_is_named():
    wanted = every_column()
    found = Columns(wanted, Mode.FAILFAST).rows(body({"a": 1, "b": True, "c": "x", "d": 2.5}), 100)
    assert found.batch.schema.equals(to_arrow_schema(wanted, timezone="UTC"))
    when = dt.datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=dt.UTC)
    (row,) = found.batch.to_pylist()
    assert row == {
        "attributes": [("a", "1"), ("b", "true"), ("c", "x"), ("d", "2.5")],
        "_payload": b"p",
        "_publisher": "quotes",
        "_sequence": 11,
        "_published": when,
        "_position": 1,
    }


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 1),
        ("boolean", 1),
        ("byte", 128),
        ("short", -32_769),
        ("int", 2**31),
        ("long", 1.0),
        ("long", True),
        ("float", 1e300),
        ("double", "1.5"),
    ],
)
def test_what_does_not_fit_is_null_and_counted_or_an_error(kind: str, value: Any):
    wanted = schema(a=KINDS[kind], n=T.LongType(), _refused=T.StringType())
    columns = Columns(wanted, Mode.PERMISSIVE)
    found = columns.rows(body({"a": value, "n": 1}, {"n": 2}), 100)
    first, second = found.batch.to_pylist()
    assert (first["a"], first["n"], found.refused) == (None, 1, 1)
    assert first["_refused"].startswith('{"a":')
    assert second["_refused"] is None
    strict = Columns(wanted, Mode.FAILFAST)
    with pytest.raises(InvalidNotification, match=r"'a' at position 1 is .* mode PERMISSIVE"):
        strict.rows(body({"a": value, "n": 1}), 100)


VALUES = st.one_of(
    st.text("ab1é", max_size=5),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
).filter(lambda value: not isinstance(value, float) or abs(value) < 1e308)
ROWS = st.lists(st.dictionaries(st.sampled_from([*KINDS, "other"]), VALUES), max_size=6)


@given(ROWS)
def test_quick_and_careful_decoding_agree(rows: list[dict[str, Any]]):
    columns = Columns(schema(**KINDS, _position=T.LongType()), Mode.PERMISSIVE)
    quick, careful = columns.rows(body(*rows), 100), columns._careful(body(*rows), 100)
    assert quick.batch.equals(careful.batch)
    assert (quick.positions, quick.refused) == (careful.positions, careful.refused)


def test_what_comes_after_the_range_is_left_out():
    columns = Columns(schema(n=T.LongType()), Mode.FAILFAST)
    found = columns.rows(body({"n": 1}, {"n": 2}, {"n": 3}), 2)
    assert (found.positions, found.batch.num_rows, found.end) == ([1, 2], 2, 3)


def test_columns_travel_to_executors():
    columns = pickle.loads(pickle.dumps(Columns(schema(n=T.LongType()), Mode.FAILFAST)))  # noqa: S301
    assert isinstance(columns.rows(body({"n": 1}), 100).batch, pa.RecordBatch)


def test_bytes_that_are_no_batch_are_a_fault_of_the_protocol():
    with pytest.raises(ProtocolError):
        Columns(schema(n=T.LongType()), Mode.PERMISSIVE).rows(b"\x95\x01", 100)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (schema(price=T.DecimalType(10, 2)), "'price' is DECIMAL(10,2)"),
        (schema(Price=T.LongType(), price=T.LongType()), "differ at most by case"),
        (schema(_postion=T.LongType()), "did you mean '_position'"),
        (schema(_position=T.StringType()), "_position is BIGINT, not STRING"),
        (schema(attributes=T.MapType(T.StringType(), T.LongType())), "MAP<STRING,STRING>"),
        (T.StructType([T.StructField("n", T.LongType(), nullable=False)]), "NOT NULL"),
        (T.StructType([]), "no columns"),
    ],
)
def test_schemas_that_cannot_be_are_refused(wanted: T.StructType, told: str):
    with pytest.raises(InvalidConfiguration) as failure:
        Columns(wanted, Mode.PERMISSIVE)
    assert told in str(failure.value)
