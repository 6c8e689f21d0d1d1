"""Which columns there are, and of what kinds, where a mapping does not say it itself.

Spark looks through all rows, once, so that no row is set aside for a type that was guessed from
others. Fields within fields have names with dots.
"""

from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.cutting import CORRUPT
from octopis.pipeline.ingest.deriving import kind_of
from octopis.pipeline.ingest.mapping import Kind, check_attribute_count, check_names_apart
from octopis.pipeline.ingest.mapping import Mapping as Mapped
from octopis.pipeline.ingest.rules import Rules, rules_of
from octopis.pipeline.ingest.source_files import (
    SourceFiles,
    first_line,
    header_names,
    places_of,
    plain_name,
)
from octopis.pipeline.schemas import literal_path, quoted

_CSV = {
    "header": "true",
    "inferSchema": "true",
    "ignoreLeadingWhiteSpace": "true",
    "ignoreTrailingWhiteSpace": "true",
    "columnNameOfCorruptRecord": CORRUPT,
}
_JSON = {"inferTimestamp": "true", "columnNameOfCorruptRecord": CORRUPT}


class Field(NamedTuple):
    """A column, or a field within one: by which names Spark reaches it, and its type."""

    path: tuple[str, ...]
    type: T.DataType

    @property
    def name(self) -> str:
        """Its name with dots."""
        return ".".join(self.path)

    @property
    def column(self) -> str:
        """The same as Spark reads it."""
        return ".".join(map(quoted, self.path))


def fields_of(schema: T.StructType, above: tuple[str, ...] = ()) -> Iterator[Field]:
    """Yield all columns, and in place of those that hold fields these."""
    for field in schema:
        path = (*above, field.name)
        if isinstance(field.dataType, T.StructType):
            yield from fields_of(field.dataType, path)
        elif path != (CORRUPT,):
            yield Field(path, field.dataType)


class Shape(NamedTuple):
    """The rules for some files and, where these are JSON, what fields there are."""

    rules: Rules
    fields: list[Field]


def infer(spark: SparkSession, files: SourceFiles, mapping: Mapped) -> Shape:
    """Return the rules for some files; raise InvalidConfiguration for what cannot be."""
    if mapping.is_typed:
        fields = _json_fields(spark, files, mapping) if files.jsons else []
        return Shape(rules_of(mapping, {}, ()), fields)
    files.check_one_format()
    if files.jsons:
        fields = _json_fields(spark, files, mapping)
    else:
        fields = list(fields_of(_schema(spark, files)))
    return Shape(rules_for(fields, mapping, files.names[0]), fields)


def _json_fields(spark: SparkSession, files: SourceFiles, mapping: Mapped) -> list[Field]:
    """Return the fields of JSON lines, and those within others that the mapping names.

    One line that has a text where all others have fields makes Spark take it for text; it is this
    line that should be set aside.
    """
    paths = [literal_path(path) for path in files.jsons]
    fields = list(fields_of(spark.read.options(**_JSON).json(paths).schema))
    outer = {field.name for field in fields if isinstance(field.type, T.StringType)}
    named = [column for rule in rules_of(mapping, {}, ()).read for column in rule.columns]
    paths_of_named = [tuple(column.split(".")) for column in dict.fromkeys(named)]
    inner = [
        Field(path, T.StringType()) for path in paths_of_named if path[0] in outer and path[1:]
    ]
    replaced = {field.path[0] for field in inner}
    return [field for field in fields if field.name not in replaced] + inner


def _schema(spark: SparkSession, files: SourceFiles) -> T.StructType:
    if files.parquets:
        paths = map(literal_path, files.parquets)
        return spark.read.option("mergeSchema", "true").parquet(*paths).schema
    # By one header each: files may have their columns in another order, or others.
    return reduce(_together, (_csv_schema(spark, path) for path in files.texts))


def _csv_schema(spark: SparkSession, path: Path) -> T.StructType:
    """Return the columns of a CSV file by the names that stand there: Spark changes some."""
    found = spark.read.options(**_CSV).csv(literal_path(path)).schema
    names = header_names(first_line(path))
    if len(names) != len(found):
        raise InvalidConfiguration(f"{path}: its header is no line of CSV: {', '.join(names)[:80]}")
    kinds = [field.dataType for field in found]
    return T.StructType(list(map(T.StructField, names, kinds)))


def _together(one: T.StructType, other: T.StructType) -> T.StructType:
    """Return the columns of both; where they are of two types, the wider one."""
    types: dict[str, T.DataType] = {field.name: field.dataType for field in one}
    for field in other:
        types[field.name] = _wider(types.get(field.name, field.dataType), field.dataType)
    return T.StructType([T.StructField(name, kind) for name, kind in types.items()])


def _wider(one: T.DataType, other: T.DataType) -> T.DataType:
    if one == other:
        return one
    kinds = {column_kind(one), column_kind(other)}
    if kinds == {Kind.INTEGER}:
        is_long = any(isinstance(each, T.DecimalType) for each in (one, other))
        return T.DecimalType(38, 0) if is_long else T.LongType()
    return T.DoubleType() if kinds <= {Kind.INTEGER, Kind.NUMBER} else T.StringType()


def column_kind(type_: T.DataType) -> Kind | None:
    """Return what kind of attribute a column makes.

    Where one cell is past 64 bits Spark finds whole numbers of any length: as such they stay exact,
    and only that cell's row is set aside.
    """
    if isinstance(type_, T.DecimalType) and not type_.scale:
        return Kind.INTEGER
    return kind_of(type_)


def rules_for(fields: list[Field], mapping: Mapped, where: str) -> Rules:
    """Return the rules for a table with these fields; raise InvalidConfiguration."""
    names = [field.name for field in fields]
    open_rules = rules_of(mapping, {}, ())
    places = places_of(open_rules, names, where)
    kinds = {}
    for name, place in places.items():
        kind = column_kind(fields[place].type)
        if kind is None:
            raise InvalidConfiguration(
                f"{where}: the column {names[place]} is {_what(fields[place])}, neither text nor "
                "number: leave it out, or derive something from it in a view of your own"
            )
        kinds[name] = kind
    rest = _rest(fields, mapping, {names[place] for place in places.values()}, where)
    check_attribute_count(len(mapping.attributes) + len(rest), where)
    check_names_apart([*mapping.attributes, *rest], where)
    return rules_of(mapping, kinds, rest.items())


def _rest(fields: list[Field], mapping: Mapped, taken: set[str], where: str) -> dict[str, Kind]:
    if not mapping.rest:
        return {}
    known = {plain_name(field.name) for field in fields}
    for name in mapping.leave_out:
        if plain_name(name) not in known:
            raise InvalidConfiguration(f"{where} has no column {name!r} that could be left out")
    left_out = {*map(plain_name, mapping.leave_out)}
    found = {}
    for field in fields:
        if field.name in taken or plain_name(field.name) in left_out:
            continue
        kind = column_kind(field.type)
        if kind is None:
            raise InvalidConfiguration(
                f"{where}: the column {field.name} is {_what(field)}, neither text nor number: "
                f"name the attributes that you want, or leave it out in a mapping"
            )
        found[field.name] = kind
    return found


def _what(field: Field) -> str:
    names: Mapping[type[T.DataType], str] = {
        T.ArrayType: "a list",
        T.MapType: "a map",
        T.BinaryType: "bytes",
        T.NullType: "always null",
    }
    return names.get(type(field.type), field.type.simpleString())
