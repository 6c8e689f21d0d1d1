"""Columns as notifications: what each kind becomes, with and without NULL."""

import datetime as dt
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from octopis.core.wire.published import decode_published
from octopis.pipeline.streaming.rows import Limits, Rows

EARLY = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "column", "found"),
    [
        (T.BooleanType(), pa.array([True]), True),
        (T.LongType(), pa.array([-(2**63)]), -(2**63)),
        (T.DoubleType(), pa.array([1e-320]), 1e-320),
        (T.StringType(), pa.array(["a\0é"]), "a\0é"),
        (T.DateType(), pa.array([dt.date(1, 2, 3)]), "0001-02-03"),
        (T.TimestampType(), pa.array([EARLY]), "1969-12-31T23:59:59.999999Z"),
        (T.DecimalType(10, 2), pa.array([Decimal("1.10")], pa.decimal128(10, 2)), 1.1),
        (T.DecimalType(18, 0), pa.array([Decimal(7)], pa.decimal128(18, 0)), 7),
    ],
)
def test_a_value_is_the_same_beside_a_null_which_is_absent(
    kind: T.DataType, column: pa.Array, found: Any
):
    rows = Rows(T.StructType([T.StructField("x", kind)]))
    both = pa.concat_arrays([column, pa.nulls(1, column.type)])
    for cells, wanted in ((column, [{"x": found}]), (both, [{"x": found}, {}])):
        read = rows.read(pa.RecordBatch.from_arrays([cells], ["x"]))
        assert [msgspec.to_builtins(each) for each in read.attributes] == wanted
        assert not read.refused


def test_rows_are_numbered_without_a_gap_where_one_is_too_long():
    rows = Rows(T.StructType([T.StructField("x", T.StringType())]))
    texts = [letter * (300 if letter == "c" else 3) for letter in "abcde"]
    found = rows.read(pa.RecordBatch.from_arrays([pa.array(texts)], ["x"]))
    limits = Limits(chunk_bytes=100, bytes_max=200)
    chunks = [body for _, body in found.encoded("p", 7, 0, limits)]
    published = [each for body in chunks for each in decode_published(body)]
    assert [each.attributes["x"][0] for each in published] == list("abde")
    assert [each.sequence for each in published] == [7, 8, 9, 10]
    assert found.refused.total() == 1
