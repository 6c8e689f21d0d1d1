"""Raw rows become quotes: judged one by one, repeats set aside, three attributes derived.

Where nobody has quotes there are synthetic ones: seeded, of the usual shape, and derived alike.
"""

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.pipeline.schemas import PRICES, QUARANTINE, QUOTES, RAW_COLUMNS
from octopis.scenario.stock import daily_quotes

DAYS = 268
"""With 500 symbols about as many quotes as the US market's largest 500 have in a year."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_DATES = ("yyyy-MM-dd", "d-MMM-yy", "d-MMM-yyyy", "yyyy/MM/dd", "M/d/yyyy", "yyyyMMdd")
_TEXT_KEPT = 500


def judged(rows: DataFrame) -> DataFrame:
    """Return typed quotes with `reason`: null for those that are accepted."""
    typed = rows.select(
        "file",
        "line",
        "text",
        "fault",
        "symbol",
        F.col("date").alias("date_text"),
        _date(F.col("date")).alias("date"),
        *(_number(name).try_cast("double").alias(name) for name in PRICES),
        *(F.col(name).alias(f"{name}_text") for name in (*PRICES, "volume")),
        _number("volume").try_cast("decimal(38,9)").alias("volume_exact"),
    ).withColumn("volume", F.col("volume_exact").try_cast("long"))
    own_faults = typed.withColumn("own_fault", _own_fault())
    # Only sound rows take part: a broken row repeats nothing, and hides nothing.
    same = Window.partitionBy("symbol", "date", F.col("own_fault").isNull()).orderBy("file", "line")
    first = F.concat_ws(", line ", F.first("file").over(same), F.first("line").over(same))
    repeat = F.when(F.row_number().over(same) > 1, F.concat(F.lit("repeats "), first))
    return own_faults.select(
        "file",
        "line",
        F.substring(F.make_valid_utf8("text"), 1, _TEXT_KEPT).alias("text"),
        F.when(F.col("own_fault").isNotNull(), F.col("own_fault"))
        .otherwise(repeat)
        .alias("reason"),
        "symbol",
        "date",
        *PRICES,
        "volume",
    )


def quarantined(judged_rows: DataFrame) -> DataFrame:
    """Return the rows that were not accepted, with where they stood and why."""
    return judged_rows.where(F.col("reason").isNotNull()).select(*QUARANTINE.fieldNames())


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


def _date(text: Column) -> Column:
    """Return a date in its usual spellings as yyyy-MM-dd; a time of day is left out."""
    day = F.substring_index(F.substring_index(text, " ", 1), "T", 1)
    found = F.coalesce(*(F.try_to_timestamp(day, F.lit(pattern)) for pattern in _DATES))
    return F.date_format(found, "yyyy-MM-dd")
