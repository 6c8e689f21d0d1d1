import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from octopis.pipeline.ingest.lines import Tally
from octopis.pipeline.ingest.quotes import accepted, derived, judged, synthetic_quotes
from octopis.pipeline.ingest.reading import WHERE
from octopis.pipeline.schemas import QUOTES

RAW = "file int, block long, place long, text string, symbol string, date string, open string, high string, low string, close string, volume string, fault string"  # noqa: E501
SOUND = {
    "file": 0, "block": 0, "place": 0, "text": "t", "symbol": "A", "date": "2023-01-02",
    "open": "2", "high": "3", "low": "1", "close": "2.5", "volume": "10", "fault": None,
}  # fmt: skip
FAULTS = [
    ({"fault": "the line is empty"}, "the line is empty"),
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
    ({"high": "0.5"}, "high is below low"),
]


@pytest.fixture(scope="module")
def reasons(spark: SparkSession) -> list[str | None]:
    rows = [{**SOUND, "place": number, **change} for number, (change, _) in enumerate(FAULTS)]
    frame = spark.createDataFrame([Row(**row) for row in rows], RAW)
    return [row["reason"] for row in judged(frame).orderBy("place").collect()]


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[f"{each[0]}" for each in FAULTS])
def test_row_that_is_not_sound_has_a_reason(reasons: list[str | None], number: int):
    assert reasons[number] == FAULTS[number][1]


def test_usual_dates_and_numbers_are_understood(spark: SparkSession):
    dates = ["2023-01-02", "2-Jan-23", "02-Jan-2023", "2023/01/02", "1/2/2023", "20230102"]
    dates += ["2023-01-02 00:00:00", "2023-01-02T09:30:00"]
    rows = [
        {**SOUND, "symbol": f"S{number}", "date": date, "volume": "1.2e3", "open": ".5"}
        for number, date in enumerate(dates)
    ]
    found = judged(spark.createDataFrame([Row(**row) for row in rows], RAW)).collect()
    assert {row["reason"] for row in found} == {None}
    assert {row["date"] for row in found} == {"2023-01-02"}
    assert {(row["volume"], row["open"]) for row in found} == {(1200, 0.5)}


def test_first_of_repeated_rows_stays_and_broken_rows_repeat_nothing(spark: SparkSession):
    rows = [
        {**SOUND, "file": 1, "place": 8},
        {**SOUND, "file": 0, "block": 9, "place": 3},
        {**SOUND, "file": 0, "place": 6, "open": "x"},
        {**SOUND, "file": 0, "place": 7, "date": "2-Jan-23"},
    ]
    frame = judged(spark.createDataFrame([Row(**row) for row in rows], RAW))
    aside = Tally(frame, ["f", "g"], headers=[]).quarantined(spark, frame)
    found = {(row["file"], row["line"]): row["reason"] for row in aside.collect()}
    assert found == {
        ("f", 1): "open is not a number",
        ("f", 3): "repeats f, line 2",
        ("g", 1): "repeats f, line 2",
    }
    assert accepted(frame).count() == 1


def test_rows_that_are_not_sound_are_spread_over_tasks(spark: SparkSession):
    rows = [{**SOUND, "place": number, "date": "never"} for number in range(100)]
    frame = judged(spark.createDataFrame([Row(**row) for row in rows], RAW))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "SinglePartition" not in plan
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        tasks = frame.select("reason", F.spark_partition_id()).distinct().count()
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    assert tasks == int(spark.conf.get("spark.sql.shuffle.partitions"))


def test_bytes_that_are_no_text_are_set_aside_and_can_be_read(spark: SparkSession):
    broken = spark.createDataFrame([Row(**SOUND)], RAW).selectExpr(
        *WHERE, "cast(unhex('41FF42') as string) as text", "symbol", "date", "open",
        "high", "low", "close", "volume", "fault",
    )  # fmt: skip
    found = judged(broken).collect()
    assert [(row["reason"], row["text"]) for row in found] == [
        ("the line is not UTF-8", "A\ufffdB")
    ]


def test_three_attributes_are_derived_per_symbol_in_order_of_date(spark: SparkSession):
    schema = "symbol string, date string, open double, high double, low double, close double, volume long"  # noqa: E501
    raw = [
        ("A", "2023-01-03", 1.0, 4.0, 2.0, 3.0, 10),
        ("A", "2023-01-02", 1.0, 2.0, 1.0, 2.0, 5),
        ("B", "2023-01-03", 1.0, 1.0, 0.0, 0.0, 7),
        ("B", "2023-01-04", 1.0, 1.0, 1.0, 1.0, 7),
    ]
    found = derived(spark.createDataFrame(raw, schema)).select(
        "symbol", "date", "change_percent", "range_percent", "traded_value"
    )
    wanted = spark.createDataFrame(
        [
            ("A", "2023-01-02", None, 100.0, 10.0),
            ("A", "2023-01-03", 50.0, 100.0, 30.0),
            ("B", "2023-01-03", None, None, 0.0),  # nothing can be divided by a price of 0
            ("B", "2023-01-04", None, 0.0, 7.0),
        ],
        "symbol string, date string, change_percent double, range_percent double, "
        "traded_value double",
    )
    assertDataFrameEqual(found, wanted)


def test_seeded_quotes_have_the_usual_shape(spark: SparkSession):
    quotes = synthetic_quotes(spark, seed=3, days=3)
    rows = quotes.orderBy("symbol", "date").collect()
    assert quotes.columns == QUOTES.fieldNames()
    assert len(rows) == 1500
    assert sum(row["change_percent"] is None for row in rows) == 500
    again = synthetic_quotes(spark, seed=3, days=3).orderBy("symbol", "date").collect()
    other = synthetic_quotes(spark, seed=4, days=3).orderBy("symbol", "date").collect()
    assert rows == again
    assert rows != other
