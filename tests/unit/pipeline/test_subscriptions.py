import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from octopis.core.filters import parse_filter
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.pipeline.ingest.folder import Data, KnownAttribute
from octopis.pipeline.ingest.mapping import Kind
from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.scenarios.notifications import NUMBER
from octopis.pipeline.scenarios.subscriptions import Wanted, filter_texts, sample_size, shuffled
from octopis.pipeline.spark.session import plain_errors


def test_order_depends_on_the_seed_alone(spark: SparkSession):
    quotes = synthetic_quotes(spark, 1, 3)
    first = shuffled(quotes, 5).orderBy(NUMBER).collect()
    assert [row[NUMBER] for row in first] == list(range(1000))
    assert (
        shuffled(quotes._replace(frame=quotes.frame.repartition(7)), 5).orderBy(NUMBER).collect()
        == first
    )
    assert shuffled(quotes, 6).orderBy(NUMBER).collect() != first
    assert len(first) == 1000, "quotes without a previous close are left out"


def test_rows_whose_key_is_null_have_an_order_of_their_own(spark: SparkSession):
    known = {"k": KnownAttribute(Kind.TEXT), "n": KnownAttribute(Kind.INTEGER)}
    found = []
    for numbers in (spark.range(0, 50, 1, 1), spark.range(49, -1, -1, 1)):
        rows = numbers.selectExpr("CAST(NULL AS STRING) AS k", "id AS n")
        numbered = shuffled(Data(rows, known, ("k",), False, "rows"), 1)
        found.append(numbered.orderBy(NUMBER).collect())
    assert found[0] == found[1]


def test_a_third_is_sampled_and_too_few_quotes_are_refused():
    assert sample_size(9_000, 0.02) == 3_000
    assert sample_size(1_000_000, 0.02) == 40_000
    with pytest.raises(InvalidConfiguration, match=r"600 quotes are too few .* it takes 753,"):
        sample_size(600, 0.02, "quotes")


def test_each_subscription_comes_from_its_own_number(spark: SparkSession):
    quotes = synthetic_quotes(spark, 1, 10)
    sample = shuffled(quotes, 1).where(F.col(NUMBER) < 1500).orderBy(NUMBER).toArrow()

    def texts(count: int, seed: int) -> dict[int, str]:
        rows = filter_texts(spark, sample, Wanted(count, 0.02, seed)).collect()
        return {row["number"]: row["filter"] for row in rows}

    few, many = texts(3, 1), texts(20, 1)
    assert {number: many[number] for number in few} == few
    assert texts(3, 2) != few
    assert len(many) == len(set(many.values())) == 20
    rows = sample.select(list(quotes.attributes)).to_pylist()
    for text in many.values():
        wanted = parse_filter(text)
        assert 0.019 <= sum(map(wanted.matches, rows)) / len(rows) <= 0.021


def test_few_quotes_will_do_where_one_row_is_more_than_the_tolerance(spark: SparkSession):
    quotes = shuffled(synthetic_quotes(spark, 1, 3), 1)
    sample = quotes.where(F.col(NUMBER) < 265).orderBy(NUMBER).toArrow()
    assert filter_texts(spark, sample, Wanted(20, 0.02, 1)).count() == 20


def test_quotes_that_are_all_alike_are_refused(spark: SparkSession):
    quotes = synthetic_quotes(spark, 1, 3).frame.dropna().limit(1)
    sample = quotes.toArrow().take([0] * 300)
    texts = filter_texts(spark, sample, Wanted(1, 0.02, 1, what="quotes"))
    said = "the quotes are too few, or too much alike"
    with pytest.raises(OperationFailed, match=said), plain_errors():
        texts.collect()
