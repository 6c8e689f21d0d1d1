"""Raw rows become quotes: judged one by one, repeats set aside, three attributes derived.

Where nobody has quotes there are synthetic ones: seeded, of the usual shape, and derived alike.
"""

from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.pipeline.ingest.reading import WHERE
from octopis.pipeline.schemas import PRICES, QUOTES, RAW_COLUMNS
from octopis.scenario.stock import daily_quotes

DAYS = 268
"""With 500 symbols about as many quotes as the US market's largest 500 have in a year."""

REPEATS = "repeats another row"

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_DATES = ("yyyy-MM-dd", "d-MMM-yy", "d-MMM-yyyy", "yyyy/MM/dd", "M/d/yyyy", "yyyyMMdd")
_TEXT_KEPT = 500


def judged(rows: DataFrame) -> DataFrame:
    """Return typed quotes with `reason`: null for those that are accepted.

    Of a row that repeats another, `first_file`, `first_block` and `first_place` say where that one
    stands. The text of accepted rows is left out: nobody asks for it again.
    """
    typed = rows.select(
        *WHERE,
        "text",
        "fault",
        "symbol",
        F.col("date").alias("date_text"),
        _date(F.col("date")).alias("date"),
        *(_number(name).try_cast("double").alias(name) for name in PRICES),
        *(F.col(name).alias(f"{name}_text") for name in (*PRICES, "volume")),
        F.when(_is_short(), F.col("volume")).try_cast("long").alias("volume_short"),
        F.when(~_is_short(), _number("volume")).try_cast("decimal(38,9)").alias("volume_exact"),
    ).withColumn("volume", F.coalesce("volume_short", F.col("volume_exact").try_cast("long")))
    own_faults = typed.select(
        *WHERE, "text", _own_fault().alias("own_fault"), "symbol", "date", *PRICES, "volume"
    )
    # Only sound rows take part: a broken row repeats nothing, and hides nothing. Each of these is
    # (but for chance, which does no harm) a group of its own, so that a file full of them is not
    # the work of one task. Numbers sort several times as fast as texts.
    is_sound = F.col("own_fault").isNull()
    group = F.when(is_sound, F.xxhash64("symbol", "date")).otherwise(F.xxhash64(*WHERE))
    same = Window.partitionBy(group, "symbol", "date", is_sound).orderBy(*WHERE)
    so_far = same.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    firsts = {f"first_{name}": F.first(name).over(so_far) for name in WHERE}
    marked = own_faults.withColumns(firsts)
    is_later = reduce(or_, (F.col(name) != F.col(f"first_{name}") for name in WHERE))
    reason = F.when(~is_sound, F.col("own_fault")).when(is_later, REPEATS)
    kept = F.substring(F.make_valid_utf8("text"), 1, _TEXT_KEPT)
    return marked.withColumn("reason", reason).select(
        *WHERE,
        F.when(F.col("reason").isNotNull(), kept).alias("text"),
        "reason",
        *(F.when(F.col("reason") == REPEATS, F.col(name)).alias(name) for name in firsts),
        "symbol",
        "date",
        *PRICES,
        "volume",
    )


def accepted(judged_rows: DataFrame) -> DataFrame:
    """Return the quotes among judged rows, with all ten attributes."""
    return derived(judged_rows.where(F.col("reason").isNull()))


def derived(quotes: DataFrame) -> DataFrame:
    """Add change against the previous close, the day's range, and traded value.

    The first quote of a symbol has no previous close, so its change is null.
    """
    before = F.lag("close").over(Window.partitionBy("symbol").orderBy("date"))
    change = 100 * (F.try_divide(F.col("close"), before) - 1)
    spread = 100 * F.try_divide(F.col("high") - F.col("low"), F.col("low"))
    return quotes.select(
        "symbol",
        "date",
        *PRICES,
        "volume",
        F.round(change, 3).alias("change_percent"),
        F.round(spread, 3).alias("range_percent"),
        F.round(F.col("close") * F.col("volume"), 0).alias("traded_value"),
    ).select(*QUOTES.fieldNames())


def synthetic_quotes(spark: SparkSession, seed: int, days: int = DAYS) -> DataFrame:
    """Return the quotes of 500 symbols that walk at random."""
    columns = daily_quotes(seed, days)
    table = pa.table({name: columns[name] for name in RAW_COLUMNS})
    return derived(spark.createDataFrame(table))


def _own_fault() -> Column:
    """Say what is wrong with a row by itself, the first thing that is."""
    found = F.col("fault")
    checks = [F.when(~F.is_valid_utf8("text"), "the line is not UTF-8")]
    checks += [_missing(F.col("symbol"), "symbol"), _missing(F.col("date_text"), "date")]
    checks.append(F.when(F.length("symbol") > 255, "symbol is too long"))
    checks.append(F.when(F.col("date").isNull(), "date does not parse"))
    for name in (*PRICES, "volume"):
        checks.append(_missing(F.col(f"{name}_text"), name))
        finite = F.col(name).isNotNull() & ~F.col(name).cast("double").isin(
            float("inf"), float("-inf")
        )
        checks.append(F.when(~finite, f"{name} is not a number"))
        checks.append(F.when(F.col(name) < 0, f"{name} is negative"))
    checks.append(F.when(F.col("volume_exact") != F.col("volume"), "volume is not a whole number"))
    checks.append(F.when(F.col("high") < F.col("low"), "high is below low"))
    return F.coalesce(found, *checks)


def _missing(value: Column, name: str) -> Column:
    return F.when(value.isNull() | (value == ""), f"{name} is missing")


def _number(name: str) -> Column:
    return F.when(F.col(name).rlike(_NUMBER), F.col(name))


def _is_short() -> Column:
    """Tell whether a volume is a plain whole number, as nearly all are: no need for decimals."""
    return F.coalesce(F.col("volume").rlike(r"^\d{1,18}$"), F.lit(False))


def _date(text: Column) -> Column:
    """Return a date in its usual spellings as yyyy-MM-dd; a time of day is left out.

    The usual one of the usual ones is known without parsing patterns.
    """
    day = F.substring_index(F.substring_index(text, " ", 1), "T", 1)
    same = F.when(day.try_cast("date").cast("string") == day, day)
    plain = F.when(day.rlike(r"^[12]\d{3}-\d\d-\d\d$"), same)
    found = F.coalesce(*(F.try_to_timestamp(day, F.lit(pattern)) for pattern in _DATES))
    return F.coalesce(plain, F.date_format(found, "yyyy-MM-dd"))
