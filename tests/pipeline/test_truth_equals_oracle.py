"""Whatever is subscribed and published, the ground truth is what the linear index says."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from octopis.core.filters import parse_filter
from octopis.core.matching import LinearIndex
from octopis.core.model import BrokerId
from octopis.pipeline.scenarios.truth import (
    PAIRS_TABLE,
    TARGETS_TABLE,
    Oracle,
    pairs,
    write_matches,
)
from octopis.scenario.tables import Subscriber

NUMBERS = st.integers(-3, 3)
CONDITIONS = st.one_of(
    st.builds("x {} {}".format, st.sampled_from(("<", ">=", "=", "<>")), NUMBERS),
    st.builds("y BETWEEN {} AND 2.5".format, NUMBERS),
    st.builds("name LIKE '{}%'".format, st.sampled_from("abc")),
    st.sampled_from(("name IS NULL", "y IS NOT NULL", "x IN (1, 2)", "x < y", "ok = TRUE")),
)
FILTERS = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=4,
)
NOTIFICATIONS = st.fixed_dictionaries(
    {},
    optional={
        "x": NUMBERS,
        "y": st.floats(-3, 3, allow_nan=False),
        "name": st.sampled_from(("a", "ab", "b", "cc")),
        "ok": st.booleans(),
    },
)
KIND = pa.struct(
    [("x", pa.int64()), ("y", pa.float64()), ("name", pa.string()), ("ok", pa.bool_())]
)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(FILTERS, max_size=90), published=st.lists(NOTIFICATIONS, max_size=40))
def test_truth_equals_the_linear_oracle(spark: SparkSession, texts: list[str], published: list):
    subscribers = [
        Subscriber(f"s{number}", "c", BrokerId("a", number % 3), parse_filter(text), 0)
        for number, text in enumerate(texts)
    ]
    linear: LinearIndex[str, str] = LinearIndex()
    linear.add_many((each.subscription, each.filter, each.broker.short) for each in subscribers)
    table = pa.table(
        {
            "publisher": pa.array(["p"] * len(published), pa.string()),
            "sequence": pa.array(range(len(published)), pa.int64()),
            "attributes": pa.array(published, KIND),
        }
    )
    frame = spark.createDataFrame(table)
    oracle = Oracle.of(subscribers)
    found = sorted((row[1], row[2]) for row in pairs(spark, frame, oracle).collect())
    assert found == sorted(
        (number, name) for number, names in enumerate(linear.matches(published)) for name in names
    )
    with TemporaryDirectory() as folder:
        assert write_matches(spark, frame, oracle, Path(folder)) == len(found)
        written = pq.read_table(Path(folder) / PAIRS_TABLE)
        targets = pq.read_table(Path(folder) / TARGETS_TABLE)
    assert found == sorted((row["sequence"], row["subscription"]) for row in written.to_pylist())
    reached = {row["sequence"]: row["brokers"] for row in targets.to_pylist()}
    assert reached == {
        number: sorted(brokers) for number, brokers in enumerate(linear.destinations(published))
    }
