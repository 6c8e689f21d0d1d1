"""Attributes that are expressions of Spark SQL, and checks of whole rows by such expressions.

Both see the attributes as they will be published. Spark's strict mode is off meanwhile: where an
expression has no value (a division by zero, a cast that fails) the attribute is absent.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.cells import MICROS_MAX
from octopis.pipeline.ingest.judging import REASON, TEXT, WHERE
from octopis.pipeline.ingest.mapping import OURS, Kind
from octopis.pipeline.ingest.rules import Rule, Rules
from octopis.pipeline.schemas import quoted

ANSI = "spark.sql.ansi.enabled"
_WINDOW = re.compile(r"\bover\s*\(", re.IGNORECASE)
_TEXTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_CASTS = {Kind.NUMBER: "double", Kind.INTEGER: "long", Kind.BOOLEAN: "boolean"}


def kind_of(type_: T.DataType) -> Kind | None:
    """Return what kind of attribute a column of Spark's makes, or None where it makes none."""
    kinds: list[tuple[tuple[type[T.DataType], ...], Kind]] = [
        ((T.StringType, T.CharType, T.VarcharType), Kind.TEXT),
        ((T.ByteType, T.ShortType, T.IntegerType, T.LongType), Kind.INTEGER),
        ((T.FloatType, T.DoubleType, T.DecimalType), Kind.NUMBER),
        ((T.BooleanType,), Kind.BOOLEAN),
        ((T.DateType,), Kind.DATE),
        ((T.TimestampType, T.TimestampNTZType), Kind.TIME),
    ]
    return next((kind for types, kind in kinds if isinstance(type_, types)), None)


@contextmanager
def forgiving(spark: SparkSession) -> Iterator[None]:
    """Let expressions without a value be null for a while, and not end the work."""
    before = spark.conf.get(ANSI)
    spark.conf.set(ANSI, "false")
    try:
        yield
    finally:
        spark.conf.set(ANSI, before or "true")


def derived(judged: DataFrame, rules: Rules) -> tuple[DataFrame, Rules]:
    """Add derived attributes to judged rows, and reasons to those that fail a check.

    Returns the rules with the kinds that the expressions turned out to have. Raises
    InvalidConfiguration for an expression that Spark does not understand.
    """
    checks = {f"{OURS}check_{at}": each for at, each in enumerate(rules.mapping.checks.items())}
    expressions = {rule.name: rule.said.derive or "" for rule in rules.derived}
    wheres = {name: f"attributes.{name}.derive" for name in expressions}
    for name, (reason, condition) in checks.items():
        expressions[name], wheres[name] = condition, f"checks.{reason!r}"
    rows = _with_expressions(judged, expressions, wheres)
    types = {field.name: field.dataType for field in rows.schema if field.name in expressions}
    for name, (_, condition) in checks.items():
        if not isinstance(types[name], T.BooleanType):
            raise InvalidConfiguration(f"{wheres[name]}: {condition} is neither true nor false")
    known = rules.with_kinds(
        {rule.name: _kind(rule, types[rule.name], wheres[rule.name]) for rule in rules.derived}
    )
    rows = rows.withColumns({rule.name: _cast(rule) for rule in known.derived})
    faults = [fault for rule in known.derived for fault in _faults(rule)]
    faults += [F.when(F.col(name), F.lit(reason)) for name, (reason, _) in checks.items()]
    return _selected(rows.withColumn(REASON, F.coalesce(REASON, *faults)), known), known


def _selected(rows: DataFrame, rules: Rules) -> DataFrame:
    """Return the columns that are asked for; rows that are not sound have no key any more."""
    is_sound = F.col(REASON).isNull()
    values = [
        F.when(is_sound, F.col(quoted(rule.name))).alias(rule.name)
        if rule.name in rules.key
        else F.col(quoted(rule.name))
        for rule in rules.read
    ]
    for rule in rules.derived:
        value = F.col(quoted(rule.name))
        in_ns = F.when(is_sound, value * F.lit(1000)).alias(rule.name)
        values.append(in_ns if rule.kind is Kind.TIME else value)
    return rows.select(*WHERE, TEXT, REASON, *values)


def _with_expressions(
    rows: DataFrame, expressions: Mapping[str, str], wheres: Mapping[str, str]
) -> DataFrame:
    """Return rows with the values of expressions, each of which may name those before it."""
    for name, text in expressions.items():
        if _WINDOW.search(_TEXTS.sub("", text)):
            raise InvalidConfiguration(
                f"{wheres[name]}: an expression sees one row; for a change against the row before "
                "there is change_of, for anything else a view of your own and --table"
            )
    try:
        return _analysed(rows, expressions)
    except PySparkException:
        known: dict[str, str] = {}
        for name, text in expressions.items():  # one after the other: which of them is it?
            known[name] = text
            try:
                _analysed(rows, known)
            except ParseException as failure:
                said = short(failure)
                raise InvalidConfiguration(f"{wheres[name]} does not parse: {said}") from failure
            except AnalysisException as failure:
                names = [*rows.columns, *known][:-1]
                raise InvalidConfiguration(f"{wheres[name]}: {_said(failure, names)}") from failure
        raise


def _analysed(rows: DataFrame, expressions: Mapping[str, str]) -> DataFrame:
    found = rows.select("*", *(F.expr(text).alias(name) for name, text in expressions.items()))
    _ = found.schema  # asks Spark Connect, too
    return found


def _said(failure: AnalysisException, columns: list[str]) -> str:
    if (failure.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
        name = (failure.getMessageParameters() or {}).get("objectName", "").replace("`", "")
        known = [column for column in columns if not column.startswith(OURS)]
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        return f"there is no attribute {name!r}{hint}"
    return short(failure)


def short(failure: PySparkException) -> str:
    """Return the first sentence of what Spark says, without its code."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    said = re.sub(r"^\[[\w.]+\]\s*", "", lines[0] if lines else "Spark does not say why")
    return re.sub(r"\s*(SQLSTATE: \w+)?;?$", "", said)


def _kind(rule: Rule, type_: T.DataType, where: str) -> Kind:
    found = kind_of(type_)
    if found is None:
        raise InvalidConfiguration(
            f"{where} gives {type_.simpleString()}, which is no attribute: text, number, boolean, "
            "date or time"
        )
    return rule.said.type or found


def _cast(rule: Rule) -> Column:
    """Return a value as attributes of its kind are held; times in microseconds, written later."""
    value = F.col(quoted(rule.name))
    if rule.kind is Kind.TIME:
        return F.unix_micros(value.cast("timestamp"))
    if rule.kind is Kind.INTEGER:  # what is too large would become the largest that there is
        is_large = F.abs(value.cast("double")) >= F.lit(2.0**63)
        return F.when(~is_large, value.cast("long"))
    return value.cast(_CASTS.get(rule.kind, "string"))


def _faults(rule: Rule) -> list[Column]:
    value, said = F.col(quoted(rule.name)), rule.said
    wrong = []
    if said.required:
        wrong.append((value.isNull(), "is missing"))
    if rule.kind is Kind.NUMBER:
        wrong.append((F.isnan(value) | (F.abs(value) == float("inf")), "is not a number"))
    if rule.kind is Kind.TIME:
        wrong.append((F.abs(value) >= F.lit(MICROS_MAX), "is not a time"))
    if rule.kind is Kind.TEXT:
        wrong.append((F.length(value) > said.max_length, "is too long"))
    if said.min is not None:
        below = "is negative" if said.min == 0 else f"is below {said.min:g}"
        wrong.append((value < said.min, below))
    if said.max is not None:
        wrong.append((value > said.max, f"is above {said.max:g}"))
    faults = [F.when(condition, F.lit(f"{rule.name} {reason}")) for condition, reason in wrong]
    return [reduce(F.coalesce, faults)] if faults else []
