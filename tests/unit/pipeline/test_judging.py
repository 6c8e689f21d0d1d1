from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from octopis.pipeline.ingest import settling as room
from octopis.pipeline.ingest.cells import parse_date
from octopis.pipeline.ingest.deriving import derived, forgiving
from octopis.pipeline.ingest.judging import FAULT, REASON, TEXT, WHERE, judge, judged_schema
from octopis.pipeline.ingest.lines import Tally
from octopis.pipeline.ingest.mapping import quotes_mapping
from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.ingest.rules import Rules, typed_rules
from octopis.pipeline.ingest.settling import rounded, settled, spread

RULES = typed_rules(quotes_mapping())
READ = [rule.name for rule in RULES.read]
WITHOUT_DERIVED = Rules(RULES.mapping, (*RULES.read, *RULES.changes))
FILE, BLOCK, PLACE = WHERE
RAW = pa.schema(
    [(FILE, pa.int32()), (BLOCK, pa.int64()), (PLACE, pa.int64())]
    + [(name, pa.string()) for name in (TEXT, *READ, FAULT)]
)
SOUND = {
    FILE: 0, BLOCK: 0, PLACE: 0, TEXT: "t", "symbol": "A", "date": "2023-01-02",
    "open": "2", "high": "3", "low": "1", "close": "2.5", "volume": "10", FAULT: None,
}  # fmt: skip
FAULTS = [
    ({FAULT: "the line is empty"}, "the line is empty"),
    ({"symbol": ""}, "symbol is missing"),
    ({"symbol": None}, "symbol is missing"),
    ({"symbol": "A" * 256}, "symbol is too long"),
    ({"date": "yesterday"}, "date does not parse"),
    ({"date": "2023-02-30"}, "date does not parse"),
    ({"date": ""}, "date is missing"),
    ({"open": "x"}, "open is not a number"),
    ({"open": "1d"}, "open is not a number"),
    ({"high": "NaN"}, "high is not a number"),
    ({"high": "1e999"}, "high is not a number"),
    ({"low": "-1"}, "low is negative"),
    ({"close": None}, "close is missing"),
    ({"volume": "1.5"}, "volume is not a whole number"),
    ({"volume": "-3"}, "volume is negative"),
    ({"volume": "1e30"}, "volume is not a number"),
]


def judged(rows: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    (found,) = judge(iter([pa.RecordBatch.from_pylist(list(rows), RAW)]), RULES)
    return found


def settle(*batches: pa.RecordBatch, rules: Rules = WITHOUT_DERIVED) -> list[pa.Table]:
    """Return the quotes, the rows set aside and the counts of rows that are sorted."""
    return [
        pa.Table.from_batches(parts) for parts in zip(*settled(iter(batches), rules), strict=True)
    ]


@pytest.fixture(scope="module")
def reasons() -> list[str | None]:
    rows = [{**SOUND, PLACE: number, **change} for number, (change, _) in enumerate(FAULTS)]
    return judged(rows).column(REASON).to_pylist()


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[f"{each[0]}" for each in FAULTS])
def test_row_that_is_not_sound_has_a_reason(reasons: list[str | None], number: int):
    assert reasons[number] == FAULTS[number][1]


def test_usual_dates_and_numbers_are_understood():
    dates = ["2023-01-02", "2-Jan-23", "02-Jan-2023", "2023/01/02", "1/2/2023", "20230102"]
    dates += ["2023-01-02 00:00:00", "2023-01-02T09:30:00"]
    found = judged(
        {**SOUND, "symbol": f"S{number}", "date": date, "volume": "1.2e3", "open": ".5"}
        for number, date in enumerate(dates)
    ).to_pylist()
    assert {row[REASON] for row in found} == {None}
    assert {row["date"] for row in found} == {"2023-01-02"}
    assert {(row["volume"], row["open"]) for row in found} == {(1200, 0.5)}


@pytest.mark.parametrize("text", ["2023-1-2", "2-Foo-23", "1/2/23", "0000-01-01", "99999999", "T"])
def test_what_is_no_date_is_none(text: str):
    assert parse_date(text) is None


def test_first_of_repeated_rows_stays_and_broken_rows_repeat_nothing(spark: SparkSession):
    rows = [
        {**SOUND, FILE: 1, PLACE: 8},
        {**SOUND, FILE: 0, BLOCK: 9, PLACE: 3},
        {**SOUND, FILE: 0, PLACE: 6, "open": "x"},
        {**SOUND, FILE: 0, PLACE: 7, "date": "2-Jan-23"},
    ]
    judged_rows = spark.createDataFrame(pa.Table.from_batches([judged(rows)])).coalesce(1)
    frame = spread(judged_rows, RULES.key)
    quotes, aside, counts = settle(*frame.toArrow().combine_chunks().to_batches())
    tally = Tally(counts.to_pylist(), ["f", "g"])
    placed = tally.quarantined(spark, spark.createDataFrame(aside))
    found = {(row["file"], row["line"]): row["reason"] for row in placed.collect()}
    assert found == {
        ("f", 1): "open is not a number",
        ("f", 3): "repeats f, line 2",
        ("g", 1): "repeats f, line 2",
    }
    assert len(quotes) == 1


def test_symbols_that_span_batches_are_settled_whole(monkeypatch: pytest.MonkeyPatch):
    rows = [
        {**SOUND, PLACE: day, "symbol": symbol, "close": f"{day}", "date": f"2023-01-{day:02d}"}
        for symbol in "ABC"
        for day in (1, *range(1, 20))
    ]
    broken = [{**SOUND, PLACE: place, "open": "x"} for place in range(30)]
    whole = pa.concat_batches([judged(broken), judged(rows)])
    at_once = settle(whole)
    monkeypatch.setattr(room, "_ROWS_AT_ONCE", 4)
    pieces = settle(*(whole.slice(start, 3) for start in range(0, len(whole), 3)))
    assert pieces[:2] == at_once[:2]
    assert sorted(map(str, pieces[2].to_pylist())) == sorted(map(str, at_once[2].to_pylist()))
    assert [len(each) for each in pieces[:2]] == [57, 33]


def test_rows_that_are_not_sound_are_spread_over_tasks(spark: SparkSession):
    rows = judged({**SOUND, PLACE: number, "date": "never"} for number in range(100))
    frame = spread(spark.createDataFrame(pa.Table.from_batches([rows])), RULES.key)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "SinglePartition" not in plan
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        tasks = frame.select(REASON, F.spark_partition_id()).distinct().count()
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    assert tasks == int(spark.conf.get("spark.sql.shuffle.partitions"))


def test_bytes_that_are_no_text_are_set_aside_and_can_be_read():
    broken = pa.RecordBatch.from_pylist([SOUND], RAW)
    text = pa.array([b"A\xffB"]).view(pa.string())
    columns = [text if name == TEXT else broken.column(name) for name in RAW.names]
    (found,) = judge(iter([pa.RecordBatch.from_arrays(columns, schema=RAW)]), RULES)
    assert found.schema == judged_schema(RULES)
    assert [(row[REASON], row[TEXT]) for row in found.to_pylist()] == [
        ("the line is not UTF-8", "A\ufffdB")
    ]


def test_attributes_are_derived_and_rows_checked_in_order_of_the_key(spark: SparkSession):
    raw = [
        ("B", "2023-01-04", 1.0, 1.0, 1.0, 1.0, 7),
        ("A", "2023-01-02", 1.0, 2.0, 1.0, 2.0, 5),
        ("A", "2023-01-02", 1.0, 2.0, 1.0, 9.0, 5),  # repeats it, and is nobody's close before
        ("A", "2023-01-03", 1.0, 0.5, 1.0, 1.0, 5),  # its high is below its low
        ("A", "2023-01-03", 1.0, 4.0, 2.0, 3.0, 10),  # so this one repeats nothing
        ("B", "2023-01-03", 1.0, 1.0, 0.0, 0.0, 7),
    ]
    rows = judged(
        {**SOUND, PLACE: place, **dict(zip(READ, map(str, each), strict=True))}
        for place, each in enumerate(raw)
    )
    with forgiving(spark):
        judged_rows = spark.createDataFrame(pa.Table.from_batches([rows])).coalesce(1)
        frame, rules = derived(judged_rows, RULES)
        ordered = spread(frame, rules.key).toArrow().combine_chunks().to_batches()
    found, aside, _ = settle(*ordered, rules=rules)
    names = ("symbol", "date", "change_percent", "range_percent", "traded_value")
    assert sorted((tuple(row[name] for name in names) for row in found.to_pylist()), key=str) == [
        ("A", "2023-01-02", None, 100.0, 10.0),
        ("A", "2023-01-03", 50.0, 100.0, 30.0),
        ("B", "2023-01-03", None, None, 0.0),  # nothing can be divided by a price of 0
        ("B", "2023-01-04", None, 0.0, 7.0),
    ]
    reasons = {row["place"]: row["reason"] for row in aside.to_pylist()}
    assert reasons == {2: "repeats another row", 3: "high is below low"}


def test_seeded_quotes_have_the_usual_shape(spark: SparkSession):
    quotes = synthetic_quotes(spark, seed=3, days=3).frame
    rows = quotes.orderBy("symbol", "date").collect()
    assert quotes.columns == RULES.schema.names
    assert len(rows) == 1500
    assert sum(row["change_percent"] is None for row in rows) == 500
    again = synthetic_quotes(spark, seed=3, days=3).frame.orderBy("symbol", "date").collect()
    other = synthetic_quotes(spark, seed=4, days=3).frame.orderBy("symbol", "date").collect()
    assert rows == again
    assert rows != other


def test_numbers_are_rounded_as_spark_rounds_them(spark: SparkSession):
    draw = np.random.default_rng(1)
    halves = (np.arange(-2000, 2000) + 0.5) / 1000
    large = np.array([1e15 + 0.5, 4503599627370497.5, 1e300, np.inf, -0.0, -0.0004, 5e-324])
    values = np.concatenate([halves, halves * 7, large, draw.normal(0, 100, 2000)])
    frame = spark.createDataFrame(pa.table({"value": values}))
    wanted = frame.select(F.round("value", 3).alias("three"), F.round("value", 0).alias("none"))
    found = wanted.toArrow().to_pydict()
    assert list(map(repr, rounded(values, 3).tolist())) == list(map(repr, found["three"]))
    assert list(map(repr, rounded(values, 0).tolist())) == list(map(repr, found["none"]))
