"""Judged rows are settled: repeats set aside, changes worked out, everything counted."""

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from octopis.pipeline.ingest.cells import Mask, iso_times
from octopis.pipeline.ingest.judging import PLACES, REASON, TEXT, WHERE, Batches
from octopis.pipeline.ingest.mapping import Kind
from octopis.pipeline.ingest.rules import Rule, Rules
from octopis.pipeline.schemas import quoted

Numbers = npt.NDArray[np.float64]

REPEATS = "repeats another row"
ACCEPTED = ""
"""Stands for the reason of rows that have none."""

ASIDE = pa.schema(
    [
        *PLACES.items(),
        ("text", pa.string()),
        ("reason", pa.string()),
        *((f"first_{name}", kind) for name, kind in PLACES.items()),
    ]
)
"""Rows that are not accepted; of one that repeats another, where that one stands."""

COUNTS = pa.schema(
    [
        ("file", pa.int32()),
        ("block", pa.int64()),
        ("kind", pa.string()),
        ("rows", pa.int64()),
        ("first", pa.int64()),
    ]
)
"""How many rows of a block have the same reason (or ACCEPTED), and the first one's place."""

_ROWS_AT_ONCE = 100_000


def spread(judged: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return judged rows, those of a series in one task, by their key and where they stand.

    A series is what has the same key but for its last part. Rows that are not sound have no key:
    they go anywhere, so that a file full of them is not the work of one task.
    """
    is_sound = F.col(REASON).isNull()
    series = [F.col(quoted(name)) for name in series_of(key)]
    group = F.when(is_sound, F.xxhash64(*series)).otherwise(F.xxhash64(*WHERE))
    return judged.repartition(group).sortWithinPartitions(*map(quoted, key), *WHERE)


def series_of(key: Sequence[str]) -> Sequence[str]:
    """Return the part of a key that rows have in common which follow each other."""
    return key[:-1] or key


def settled(batches: Batches, rules: Rules) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Yield accepted rows, rows that are set aside, and counts, from rows that were spread."""
    schema, counts = rules.schema, []
    for rows in _whole_series(batches, rules.key) if rules.key else batches:
        is_first = ~_as_before(rows, rules.key)
        reason = pc.if_else(pa.array(is_first), rows.column(REASON), REPEATS)
        is_aside = reason.is_valid()
        counts.append(_counted(rows, reason))
        accepted = rows.filter(pc.invert(is_aside)) if pc.any(is_aside).as_py() else rows
        yield (
            _completed(accepted, rules, schema),
            _set_aside(rows, reason, is_first).filter(is_aside),
            pa.RecordBatch.from_pylist([], COUNTS),
        )
    if counts:
        nothing = (pa.RecordBatch.from_pylist([], each) for each in (schema, ASIDE))
        yield *nothing, _added_up(counts)


def _whole_series(batches: Batches, key: Sequence[str]) -> Batches:
    """Put batches together, and cut them where another series begins."""
    series = series_of(key)
    held: list[pa.RecordBatch] = []
    wanted = _ROWS_AT_ONCE
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) < wanted:
            continue
        rows = pa.concat_batches(held)
        last = int(np.flatnonzero(~_as_before(rows, series))[-1])
        if last:
            yield rows.slice(0, last)
        held = [rows.slice(last)]
        wanted = max(_ROWS_AT_ONCE, 2 * len(held[0]))
    if held:
        yield pa.concat_batches(held)


def _as_before(rows: pa.RecordBatch, names: Sequence[str]) -> Mask:
    """Tell which rows have the same values as the ones before them; nulls are never the same."""
    same = np.zeros(len(rows), np.bool_)
    if not names:
        return same
    same[1:] = True
    for name in names:
        values = rows.column(name)
        found = pc.fill_null(pc.equal(values[1:], values[:-1]), fill_value=False)
        same[1:] &= found.to_numpy(zero_copy_only=False)
    return same


def _set_aside(rows: pa.RecordBatch, reason: pa.Array, is_first: Mask) -> pa.RecordBatch:
    first_of_each = pa.array(np.flatnonzero(is_first)[np.cumsum(is_first) - 1])
    where = [rows.column(name) for name in WHERE]
    firsts = [pc.if_else(pa.array(is_first), None, values.take(first_of_each)) for values in where]
    return pa.RecordBatch.from_arrays([*where, rows.column(TEXT), reason, *firsts], schema=ASIDE)


def _counted(rows: pa.RecordBatch, reason: pa.Array) -> pa.Table:
    kind = pc.fill_null(reason, ACCEPTED)
    file, block, place = (rows.column(name) for name in WHERE)
    columns = [file, block, kind, place]
    table = pa.table(columns, names=["file", "block", "kind", "place"])
    counted = table.group_by(["file", "block", "kind"]).aggregate(
        [([], "count_all"), ("place", "min")]
    )
    return counted.rename_columns(COUNTS.names)


def _added_up(counts: list[pa.Table]) -> pa.RecordBatch:
    table = pa.concat_tables(counts).group_by(["file", "block", "kind"])
    added = table.aggregate([("rows", "sum"), ("first", "min")]).rename_columns(COUNTS.names)
    return added.cast(COUNTS).combine_chunks().to_batches()[0]


def _completed(accepted: pa.RecordBatch, rules: Rules, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_column(accepted, rule, rules.key) for rule in rules.all]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(rows: pa.RecordBatch, rule: Rule, key: Sequence[str]) -> pa.Array:
    if rule.said.change_of:
        return changes(rows, rule, key)
    values = rows.column(rule.name)
    is_moment = rule.said.derive is not None and rule.kind is Kind.TIME and not rule.in_ns
    return iso_times(values) if is_moment else values


def changes(rows: pa.RecordBatch, rule: Rule, key: Sequence[str]) -> pa.Array:
    """Return how much an attribute has changed in %, against the row before it in its series.

    Rows come by their key. The first of a series has none before it, so its change is null, as is
    what would be divided by 0.
    """
    values = pc.fill_null(rows.column(rule.said.change_of).cast(pa.float64()), np.nan).to_numpy()
    before = np.append(0.0, values)[:-1]
    before[~_as_before(rows, series_of(key))] = 0.0
    with np.errstate(all="ignore"):
        change = 100 * (values / before - 1)
    is_unknown = (before == 0) | ~np.isfinite(change)
    return pa.array(rounded(change, rule.said.digits), mask=is_unknown)


def rounded(values: Numbers, digits: int) -> Numbers:
    """Round halves away from zero, as Spark does: a half is what is written like one.

    Of 0.0005 numpy knows that it is a little more or less; so those near a half are looked at as
    they are written.
    """
    scale = 10.0**digits
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * scale
        found = np.copysign(np.floor(scaled + 0.5) / scale, values) + 0.0  # no -0.0
        near_half = np.abs(scaled - np.floor(scaled) - 0.5) <= scaled * 1e-12
    is_whole = ~(scaled < 2**50)  # or nothing that could be rounded
    found[is_whole] = values[is_whole]
    unit = Decimal(1).scaleb(-digits)
    for place in np.flatnonzero(near_half & ~is_whole):
        written = Decimal(repr(float(values[place])))
        found[place] = float(written.quantize(unit, ROUND_HALF_UP)) + 0.0
    return found
