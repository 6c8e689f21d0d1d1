"""Each subscription matches about the wanted share of quotes that it was not made from."""

import numpy as np
import pytest
from pyspark.sql import SparkSession

from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex
from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.scenarios.notifications import NUMBER
from octopis.pipeline.scenarios.subscriptions import Wanted, filter_texts, sample_size, shuffled


@pytest.mark.parametrize("seed", [1, 2])
def test_selectivity_on_held_back_rows(spark: SparkSession, seed: int):
    data = synthetic_quotes(spark, seed, 70)
    rows = shuffled(data, seed).orderBy(NUMBER).select(*data.columns).toArrow()
    size = sample_size(len(rows), 0.02)
    wanted = Wanted(300, 0.02, seed)
    texts = filter_texts(spark, rows[:size], wanted).toArrow().column("filter").to_pylist()
    index: BitsetIndex[int, int] = BitsetIndex()
    index.add_many((number, parse_filter(text), 0) for number, text in enumerate(texts))
    held_back = rows[size:].to_pylist()
    assert len(held_back) > 20_000
    _, numbers = index.match_numbers(held_back)
    shares = np.bincount(numbers, minlength=len(texts)) / len(held_back)
    assert shares.min() >= 0.01
    assert shares.max() <= 0.03
    assert 0.019 <= shares.mean() <= 0.021
