"""Columns as notifications, a whole Arrow batch at a time.

Each column is an attribute, and a value that is NULL is absent. `_payload` is the payload. Dates
and timestamps become text in ISO 8601, of one length, so that it sorts as they do; timestamps with
a time zone are in UTC and end in Z.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import compress, count, repeat
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from octopis.core.model.notification import ATTRIBUTES_MAX, NAME_LENGTH_MAX, TEXT_LENGTH_MAX
from octopis.core.wire.frames import encode
from octopis.core.wire.published import PUBLISH_MAX
from octopis.errors import InvalidConfiguration

PAYLOAD = "_payload"
METADATA = ("_publisher", "_sequence", "_published", "_position", "_refused")
"""What the source says of a notification, and nobody can say of one that is not published yet."""

_EXACT_DIGITS = 15
"""A decimal of so many digits is the same number as a double."""

_LONG_DIGITS = 18
_LONG_SHARE = 4
"""A row that is too long takes at least such a part of that in its columns: the rest is names."""

_ROW_HEAD = bytes(160)
"""As long as what stands in a row beside attributes and payload: publisher, number and time."""

_Convert = Callable[[pa.Array], pa.Array]


def _iso_date(column: pa.Array) -> pa.Array:
    return pc.strftime(column, "%Y-%m-%d")


def _iso_local(column: pa.Array) -> pa.Array:
    return pc.strftime(column.cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")


def _iso_utc(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_iso_local(column), "Z", "")


def _double(column: pa.Array) -> pa.Array:
    return column.cast(pa.float64())


def _long(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64())


def _same(column: pa.Array) -> pa.Array:
    return column


_CONVERTS: dict[type[T.DataType], _Convert] = {
    T.BooleanType: _same,
    T.ByteType: _same,
    T.ShortType: _same,
    T.IntegerType: _same,
    T.LongType: _same,
    T.FloatType: _double,
    T.DoubleType: _same,
    T.StringType: _same,
    T.CharType: _same,
    T.VarcharType: _same,
    T.DateType: _iso_date,
    T.TimestampType: _iso_utc,
    T.TimestampNTZType: _iso_local,
}

_INSTEAD: dict[type[T.DataType], str] = {
    T.ArrayType: "explode(...) it into rows, or send to_json(...) of it",
    T.MapType: "send each key as a column of its own, or to_json(...) of it",
    T.StructType: 'select("name.*") its fields, or send to_json(...) of it',
    T.BinaryType: f"call it {PAYLOAD}, or send hex(...) or base64(...) of it",
    T.DecimalType: "cast it to DOUBLE, or to STRING if every digit counts",
}


class Rows:
    """How the columns of a schema become attributes. Raises InvalidConfiguration."""

    def __init__(self, schema: T.StructType) -> None:
        self._has_payload = PAYLOAD in schema.names
        self._columns: dict[str, _Convert] = {}
        for field in schema:
            if field.name == PAYLOAD:
                _check_payload(field)
            else:
                _check_name(field.name, self._columns)
                self._columns[field.name] = _convert(field)
        if len(self._columns) > ATTRIBUTES_MAX:
            raise InvalidConfiguration(
                f"a notification has at most {ATTRIBUTES_MAX} attributes, and the query has "
                f"{len(self._columns)} columns: select fewer, or put some into {PAYLOAD}"
            )

    def read(self, batch: pa.RecordBatch) -> "Notifications":
        """Return what the rows of a batch publish, and why some of them do not."""
        columns = {name: convert(batch.column(name)) for name, convert in self._columns.items()}
        refused: Counter[str] = Counter()
        bad = _bad_rows(columns, refused)
        payload = batch.column(PAYLOAD) if self._has_payload else None
        if bad is not None:
            good = pc.invert(bad)
            columns = {name: column.filter(good) for name, column in columns.items()}
            payload = None if payload is None else payload.filter(good)
        rows = batch.num_rows - refused.total()
        return Notifications(columns, payload, rows, refused, batch.nbytes)


class Notifications:
    """So many `rows` as attributes and payloads; others were `refused`, by reason."""

    def __init__(
        self,
        columns: dict[str, pa.Array],
        payload: pa.Array | None,
        rows: int,
        refused: "Counter[str]",
        size: int,
    ) -> None:
        self._size = size
        self.rows = rows
        self.refused = refused
        made = attributes_type(tuple(columns))
        values = [_values(column) for column in columns.values()]
        self.attributes = list(map(made, *values)) if values else [made() for _ in range(rows)]
        self.payloads = [b""] * rows if payload is None else _payloads(payload)

    def encoded(
        self, publisher: str, first: int, now_ns: int, limits: "Limits"
    ) -> Iterator[tuple[int, bytes]]:
        """Yield how many rows there are in the next chunk, and their bytes, as publishers send it.

        Rows are numbered from `first` on. What is too long for any frame is refused, and has no
        number.
        """
        at = 0
        while at < len(self.attributes):
            upto = at + limits.rows
            chunk = list(
                zip(
                    self.attributes[at:upto],
                    self.payloads[at:upto],
                    repeat(publisher),
                    count(first),
                    repeat(now_ns),
                )
            )
            body = encode(chunk)
            if len(chunk) > 1 and len(body) > limits.chunk_bytes:
                limits.rows = max(1, len(chunk) // 2)
                continue
            at += len(chunk)
            if len(body) > limits.bytes_max:
                self._refuse_long(limits.bytes_max)
                continue
            first += len(chunk)
            limits.learn(len(chunk), len(body))
            yield len(chunk), body

    def shorten(self, bytes_max: int) -> None:
        """Leave out, and count, what is too long for a broker that takes so many bytes a row."""
        if self._size < bytes_max // _LONG_SHARE:  # so no row can be
            return
        fits = [
            len(encode((*row, _ROW_HEAD))) <= bytes_max
            for row in zip(self.attributes, self.payloads, strict=True)
        ]
        self.attributes = list(compress(self.attributes, fits))
        self.payloads = list(compress(self.payloads, fits))
        for _ in range(fits.count(False)):
            self._refuse_long(bytes_max)

    def _refuse_long(self, bytes_max: int) -> None:
        self.refused[f"the row is longer than {bytes_max:,} bytes"] += 1
        self.rows -= 1


class Limits(msgspec.Struct):
    """How much goes into a chunk: `rows` follows how long they are."""

    chunk_bytes: int
    bytes_max: int
    rows: int = 256

    def learn(self, rows: int, size: int) -> None:
        """Aim at chunks that are almost full."""
        fits = self.chunk_bytes * 3 // 4 * rows // size
        self.rows = min(max(1, fits), PUBLISH_MAX)


@cache
def attributes_type(names: tuple[str, ...]) -> Callable[..., Any]:
    """Return the type of attributes with these names: values that are UNSET are absent.

    Made and encoded by msgspec, they take a fraction of what dictionaries do.
    """
    fields = {f"column_{number}": name for number, name in enumerate(names)}
    return msgspec.defstruct(
        "Attributes", [(field, Any, msgspec.UNSET) for field in fields], rename=fields, gc=False
    )


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column, UNSET where it is NULL."""
    if not column.null_count:
        found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return found
    absent = column.is_null().to_numpy(zero_copy_only=False).tolist()
    there = column.fill_null(_filling(column.type)).to_numpy(zero_copy_only=False).tolist()
    unset = msgspec.UNSET
    return [unset if gone else value for gone, value in zip(absent, there, strict=True)]


def _filling(kind: pa.DataType) -> object:
    """Return something that may stand where a column of this type is NULL."""
    if pa.types.is_boolean(kind):
        return False
    return "" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else 0


def _payloads(column: pa.Array) -> list[bytes]:
    found: list[bytes] = column.cast(pa.binary()).fill_null(b"").to_pylist()
    return found


def _bad_rows(columns: dict[str, pa.Array], refused: "Counter[str]") -> pa.Array | None:
    """Return which rows cannot be published, if there are any; count them by their first fault."""
    bad: pa.Array | None = None
    for name, column in columns.items():
        fault = _fault(column)
        if fault is None:
            continue
        reason, mask = fault
        fresh = mask if bad is None else pc.and_not(mask, bad)
        refused[f"column {name!r} {reason}"] += pc.sum(fresh).as_py() or 0
        bad = mask if bad is None else pc.or_(bad, mask)
    return bad


def _fault(column: pa.Array) -> tuple[str, pa.Array] | None:
    """Return what is wrong with some values of a column, and in which rows."""
    if pa.types.is_floating(column.type):
        mask = pc.fill_null(pc.invert(pc.is_finite(column)), False)
        reason = "is NaN or infinite, which compares with nothing: make it NULL"
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        if (pc.max(pc.binary_length(column)).as_py() or 0) <= TEXT_LENGTH_MAX:
            return None
        mask = pc.fill_null(pc.greater(pc.utf8_length(column), TEXT_LENGTH_MAX), False)
        reason = f"is longer than {TEXT_LENGTH_MAX:,} characters: put it into {PAYLOAD}"
    else:
        return None
    return (reason, mask) if pc.any(mask).as_py() else None


def _check_payload(field: T.StructField) -> None:
    if not isinstance(field.dataType, T.BinaryType | T.StringType):
        raise InvalidConfiguration(
            f"the column {PAYLOAD} is BINARY or STRING, not {field.dataType.simpleString()}"
        )


def _check_name(name: str, others: Collection[str]) -> None:
    if name in METADATA:
        raise InvalidConfiguration(
            f"the column {name} is what the source says of a notification that it has read, and "
            f'not of one to publish: .drop("{name}"), or give it another name'
        )
    if name in others:
        raise InvalidConfiguration(f"there are two columns {name!r}: rename one")
    if not 1 <= len(name) <= NAME_LENGTH_MAX:
        raise InvalidConfiguration(
            f"a column's name has 1 to {NAME_LENGTH_MAX} characters, not {len(name)}: {name[:20]!r}"
        )


def _convert(field: T.StructField) -> _Convert:
    kind = field.dataType
    if isinstance(kind, T.DecimalType):
        if not kind.scale and kind.precision <= _LONG_DIGITS:
            return _long
        if kind.precision <= _EXACT_DIGITS:
            return _double
    convert = _CONVERTS.get(type(kind))
    if convert is None:
        instead = _INSTEAD.get(type(kind), "cast it to STRING")
        raise InvalidConfiguration(
            f"the column {field.name!r} is {kind.simpleString()}, which is no value of an "
            f"attribute: {instead}"
        )
    return convert
