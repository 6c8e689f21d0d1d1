"""Columns: which a schema may have, and how notifications become them, straight from the bytes.

A schema becomes a struct whose fields are its columns, and a whole answer of the broker is decoded
into such structs at once: attributes that nobody wants are never made. Where a value does not fit
its column that fails, and this one answer is decoded again with care, value by value.
"""

import logging
from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Meta
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from octopis.core.model import Value
from octopis.core.model.suggestion import did_you_mean
from octopis.core.wire.durable import decode_batch
from octopis.core.wire.published import PublishedBody
from octopis.errors import InvalidConfiguration, InvalidNotification, ProtocolError
from octopis.pipeline.streaming.connection import Body
from octopis.pipeline.streaming.options import Mode

ATTRIBUTES = "attributes"
REFUSED = "_refused"
METADATA: dict[str, T.DataType] = {
    "_payload": T.BinaryType(),
    "_publisher": T.StringType(),
    "_sequence": T.LongType(),
    "_published": T.TimestampType(),
    "_position": T.LongType(),
}
_FIELDS = {
    "_payload": "payload",
    "_publisher": "publisher",
    "_sequence": "sequence",
    "_published": "intended_ns",
}
_MAP = T.MapType(T.StringType(), T.StringType())
_FLOAT_MAX = 3.4028234663852886e38


def _whole(bits: int) -> Any:
    return Annotated[int, Meta(ge=-(2 ** (bits - 1)), le=2 ** (bits - 1) - 1)]


_KINDS: dict[type[T.DataType], Any] = {
    T.StringType: str,
    T.BooleanType: bool,
    T.ByteType: _whole(8),
    T.ShortType: _whole(16),
    T.IntegerType: _whole(32),
    T.LongType: _whole(64),
    T.FloatType: Annotated[float, Meta(ge=-_FLOAT_MAX, le=_FLOAT_MAX)],
    T.DoubleType: float,
}
"""What fits a column, as msgspec says it: an integer fits a double, and nothing else widens."""

_log = logging.getLogger(__name__)


def every_column() -> T.StructType:
    """Return the columns of a source without a schema: all attributes as text, all metadata."""
    fields = [T.StructField(name, kind) for name, kind in METADATA.items()]
    return T.StructType([T.StructField(ATTRIBUTES, _MAP), *fields])


def check_schema(schema: T.StructType) -> None:
    """Raise InvalidConfiguration where notifications cannot become such rows."""
    seen: dict[str, str] = {}
    for field in schema:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name or sum(each.name == field.name for each in schema) > 1:
            raise InvalidConfiguration(
                f"the columns {other!r} and {field.name!r} differ at most by case, and Spark "
                "cannot tell them apart: leave one out"
            )
        _check_field(field)
    if not seen:
        raise InvalidConfiguration("the schema has no columns: name the attributes to read")


def _check_field(field: T.StructField) -> None:
    name, kind = field.name, field.dataType
    if name in METADATA or name == REFUSED:
        known = METADATA.get(name, T.StringType())
        if kind != known:
            reason = f"{name} is {known.simpleString().upper()}, not {kind.simpleString().upper()}"
            raise InvalidConfiguration(f"the column {reason}")
        if not field.nullable and name == REFUSED:
            raise InvalidConfiguration(f"the column {REFUSED} is NULL where all is well")
        return
    if name.startswith("_") and (hint := did_you_mean(name, [*METADATA, REFUSED])):
        raise InvalidConfiguration(f"there is no column {name!r}{hint}")
    if name == ATTRIBUTES and isinstance(kind, T.MapType):
        if kind != _MAP:
            reason = f"{ATTRIBUTES} is MAP<STRING,STRING>, not {kind.simpleString().upper()}"
            raise InvalidConfiguration(f"the column {reason}")
        return
    if type(kind) not in _KINDS:
        raise InvalidConfiguration(
            f"the column {name!r} is {kind.simpleString().upper()}, and attributes are text, "
            "numbers and truth values: STRING, BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT or DOUBLE"
        )
    if not field.nullable:
        reason = f"the column {name!r} is NOT NULL, and any attribute may be absent: leave that out"
        raise InvalidConfiguration(reason)


class Rows(NamedTuple):
    """What one answer of a broker holds, up to a position."""

    epoch: int
    missing: int
    end: int
    positions: list[int]
    batch: pa.RecordBatch
    refused: int


class Columns:
    """The columns that a user wants, and how to make them."""

    def __init__(self, schema: T.StructType, mode: Mode) -> None:
        check_schema(schema)
        self._schema, self._mode = schema, mode
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._kinds = {
            field.name: _KINDS[type(field.dataType)]
            for field in schema
            if field.name not in METADATA and type(field.dataType) in _KINDS
            if field.name != REFUSED
        }
        self._has_map = any(isinstance(field.dataType, T.MapType) for field in schema)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by what it is made of: types and decoders are made again where they are used."""
        return Columns, (self._schema, self._mode)

    @cached_property
    def _decode(self) -> Callable[[Body], Any]:
        places = enumerate(self._kinds.items())
        fields = [
            (f"c{place}", kind | None, msgspec.field(default=None, name=name))
            for place, (name, kind) in places
        ]
        attributes = msgspec.defstruct("Attributes", fields, gc=False)
        about = [("publisher", str), ("sequence", int), ("intended_ns", int)]
        body = [("attributes", attributes), ("payload", bytes), *about]
        # What stands behind the last that is wanted is passed over, and never made.
        wanted = [_FIELDS.get(field.name, "attributes") for field in self._schema]
        body = body[: max(place for place, (name, _) in enumerate(body) if name in wanted) + 1]
        notification = msgspec.defstruct("Body", body, array_like=True, gc=False)
        item = [("position", int), ("notification", notification)]
        items: Any = msgspec.defstruct("Item", item, array_like=True, gc=False)
        head = [("request", int), ("epoch", int), ("missing", int), ("end", int)]
        batch = msgspec.defstruct("Batch", [*head, ("items", list[items])], array_like=True)
        return msgspec.msgpack.Decoder(batch).decode

    def rows(self, body: Body, upto: int) -> Rows:
        """Return the rows of an answer, without what comes after a position.

        Raises InvalidNotification where a value does not fit its column in FAILFAST mode.
        """
        if self._has_map:
            return self._careful(body, upto)
        try:
            found = self._decode(body)
        except msgspec.ValidationError:
            return self._careful(body, upto)
        except (msgspec.DecodeError, ValueError) as failure:
            raise ProtocolError(f"a batch cannot be read: {failure}") from failure
        items = _within(found.items, upto)
        bodies = [each.notification for each in items]
        attributes = [each.attributes for each in bodies]
        columns: dict[str, list[Any]] = {
            name: list(map(attrgetter(f"c{place}"), attributes))
            for place, name in enumerate(self._kinds)
        }
        return self._made(found, items, bodies, columns, [{}] * len(items))

    def _careful(self, body: Body, upto: int) -> Rows:
        """Decode everything, and look at each value that is wanted."""
        found = decode_batch(body)
        items = _within(found.items, upto)
        refused: list[dict[str, Value]] = [{} for _ in items]
        columns: dict[str, list[Any]] = {name: [] for name in self._kinds}
        for item, bad in zip(items, refused, strict=True):
            attributes = item.notification.attributes
            for name, kind in self._kinds.items():
                value = attributes.get(name)
                if value is not None:
                    try:
                        value = msgspec.convert(value, kind)
                    except msgspec.ValidationError:
                        self._refuse(name, value, item.position)
                        bad[name], value = value, None
                columns[name].append(value)
        bodies = [each.notification for each in items]
        if self._has_map:
            columns[ATTRIBUTES] = [_texts(each) for each in bodies]
        return self._made(found, items, bodies, columns, refused)

    def _refuse(self, name: str, value: Value, position: int) -> None:
        if self._mode is Mode.FAILFAST:
            kind = self._arrow.field(name).type
            raise InvalidNotification(
                f"the attribute {name!r} at position {position:,} is {value!r}, which is no "
                f"{kind}; mode PERMISSIVE makes it NULL"
            )

    def _made(
        self,
        found: Any,
        items: list[Any],
        bodies: list[Any],
        columns: dict[str, list[Any]],
        refused: list[dict[str, Value]],
    ) -> Rows:
        positions = [each.position for each in items]
        arrays = []
        for field in self._arrow:
            name = field.name
            if name == "_published":
                micros = [each.intended_ns // 1000 for each in bodies]
                arrays.append(pa.array(micros, pa.int64()).cast(field.type))
                continue
            if name in columns:
                values = columns[name]
            elif name == "_position":
                values = positions
            elif name == REFUSED:
                values = [msgspec.json.encode(bad).decode() if bad else None for bad in refused]
            else:
                values = list(map(attrgetter(name.removeprefix("_")), bodies))
            arrays.append(pa.array(values, field.type))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._arrow)
        count = sum(map(bool, refused))
        return Rows(found.epoch, found.missing, found.end, positions, batch, count)


def _within(items: list[Any], upto: int) -> list[Any]:
    if not items or items[-1].position <= upto:
        return items
    return [each for each in items if each.position <= upto]


def _texts(body: PublishedBody) -> list[tuple[str, str]]:
    return [(name, _text(value)) for name, value in body.attributes.items()]


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else repr(value)
