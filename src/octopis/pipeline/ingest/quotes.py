"""Judged rows become quotes: repeats set aside, three attributes derived, everything counted.

Where nobody has quotes there are synthetic ones: seeded, of the usual shape, and derived alike.
"""

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from octopis.pipeline.ingest.judging import WHERE, Batches
from octopis.pipeline.schemas import QUOTES, RAW_COLUMNS
from octopis.scenario.stock import daily_quotes

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

DAYS = 268
"""With 500 symbols about as many quotes as the US market's largest 500 have in a year."""

REPEATS = "repeats another row"
ACCEPTED = ""
"""Stands for the reason of rows that have none."""

QUOTE_PARTS = to_arrow_schema(QUOTES)

_PLACES = {"file": pa.int32(), "block": pa.int64(), "place": pa.int64()}
ASIDE = pa.schema(
    [
        *_PLACES.items(),
        ("text", pa.string()),
        ("reason", pa.string()),
        *((f"first_{name}", kind) for name, kind in _PLACES.items()),
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


def spread(judged: DataFrame) -> DataFrame:
    """Return judged rows, those of a symbol in one task, by date and where they stand.

    Rows that are not sound have no symbol: they go anywhere, so that a file full of them is not
    the work of one task.
    """
    is_sound = F.col("reason").isNull()
    group = F.when(is_sound, F.xxhash64("symbol")).otherwise(F.xxhash64(*WHERE))
    return judged.repartition(group).sortWithinPartitions("symbol", "date", *WHERE)


def settled(batches: Batches) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Yield quotes, rows that are set aside, and counts, from rows that were spread."""
    counts = []
    for rows in _whole_symbols(batches):
        is_first = ~(_as_before(rows.column("symbol")) & _as_before(rows.column("date")))
        reason = pc.if_else(pa.array(is_first), rows.column("reason"), REPEATS)
        is_aside = reason.is_valid()
        counts.append(_counted(rows, reason))
        yield (
            derived(rows.filter(pc.invert(is_aside))),
            _set_aside(rows, reason, is_first).filter(is_aside),
            pa.RecordBatch.from_pylist([], COUNTS),
        )
    if counts:
        nothing = (pa.RecordBatch.from_pylist([], schema) for schema in (QUOTE_PARTS, ASIDE))
        yield *nothing, _added_up(counts)


def _whole_symbols(batches: Batches) -> Batches:
    """Put batches together, and cut them where another symbol begins."""
    held: list[pa.RecordBatch] = []
    wanted = _ROWS_AT_ONCE
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) < wanted:
            continue
        rows = pa.concat_batches(held)
        last = _last_symbol(rows.column("symbol"))
        if last:
            yield rows.slice(0, last)
        held = [rows.slice(last)]
        wanted = max(_ROWS_AT_ONCE, 2 * len(held[0]))
    if held:
        yield pa.concat_batches(held)


def _last_symbol(symbols: pa.Array) -> int:
    """Return where the last symbol begins; rows without one need not stay together."""
    last = symbols[-1]
    return int(pc.index(symbols, last).as_py()) if last.is_valid else len(symbols)


def _as_before(values: pa.Array) -> Mask:
    """Tell which values are the same as the ones before them."""
    same = np.zeros(len(values), np.bool_)
    found = pc.fill_null(pc.equal(values[1:], values[:-1]), fill_value=False)
    same[1:] = found.to_numpy(zero_copy_only=False)
    return same


def _set_aside(rows: pa.RecordBatch, reason: pa.Array, is_first: Mask) -> pa.RecordBatch:
    first_of_each = pa.array(np.flatnonzero(is_first)[np.cumsum(is_first) - 1])
    where = [rows.column(name) for name in WHERE]
    firsts = [pc.if_else(pa.array(is_first), None, values.take(first_of_each)) for values in where]
    return pa.RecordBatch.from_arrays([*where, rows.column("text"), reason, *firsts], schema=ASIDE)


def _counted(rows: pa.RecordBatch, reason: pa.Array) -> pa.Table:
    kind = pc.fill_null(reason, ACCEPTED)
    columns = [rows.column("file"), rows.column("block"), kind, rows.column("place")]
    table = pa.table(columns, names=["file", "block", "kind", "place"])
    counted = table.group_by(["file", "block", "kind"]).aggregate(
        [([], "count_all"), ("place", "min")]
    )
    return counted.rename_columns(COUNTS.names)


def _added_up(counts: list[pa.Table]) -> pa.RecordBatch:
    table = pa.concat_tables(counts).group_by(["file", "block", "kind"])
    added = table.aggregate([("rows", "sum"), ("first", "min")]).rename_columns(COUNTS.names)
    return added.cast(COUNTS).combine_chunks().to_batches()[0]


def derived(quotes: pa.RecordBatch) -> pa.RecordBatch:
    """Add change against the previous close, the day's range, and traded value.

    Quotes come by symbol and date. The first of a symbol has no previous close, so its change is
    null, as is what would be divided by 0.
    """
    high, low, close = (quotes.column(name).to_numpy() for name in ("high", "low", "close"))
    before = np.append(0.0, close)[:-1]
    before[~_as_before(quotes.column("symbol"))] = 0.0
    with np.errstate(all="ignore"):
        change = 100 * (close / before - 1)
        spread_of_day = 100 * ((high - low) / low)
        traded = close * quotes.column("volume").to_numpy()
    columns = [
        *(quotes.column(name) for name in RAW_COLUMNS),
        pa.array(rounded(change, 3), mask=before == 0),
        pa.array(rounded(spread_of_day, 3), mask=low == 0),
        pa.array(rounded(traded, 0)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=QUOTE_PARTS)


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


def synthetic_quotes(spark: SparkSession, seed: int, days: int = DAYS) -> DataFrame:
    """Return the quotes of 500 symbols that walk at random."""
    columns = daily_quotes(seed, days)
    table = pa.table({name: columns[name] for name in RAW_COLUMNS})
    rows = table.sort_by([("symbol", "ascending"), ("date", "ascending")]).combine_chunks()
    return spark.createDataFrame(pa.Table.from_batches(map(derived, rows.to_batches())))
