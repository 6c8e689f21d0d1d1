"""Build: quotes become a scenario that the simulator and live overlays read.

Everything depends on the plan's seed and the quotes, and on nothing else: not on partitions,
cores, or the order in which anything was read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.files import whole_folder
from octopis.pipeline.scenarios.notifications import (
    notifications,
    part_starts,
    write_notifications,
)
from octopis.pipeline.scenarios.subscriptions import filter_texts, sample_size, shuffled
from octopis.pipeline.spark.session import cached
from octopis.scenario import folder as files
from octopis.scenario.clients import Clients, attribute_types
from octopis.scenario.plan import ScenarioPlan


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario was built from."""

    quotes: int
    without_previous_close: int
    """Quotes set aside: the first of each symbol has nothing to change against."""
    sampled: int
    held_back: int
    """Quotes that made no subscription; these are published."""
    subscriptions: int
    notifications: int


class OrderedQuotes(NamedTuple):
    """Quotes in the order of a seed, which Spark keeps: several scenarios may be built of them."""

    frame: DataFrame
    seed: int
    quotes: int
    """Those that were given."""
    whole: int
    """Those of them that have all ten attributes."""


@contextmanager
def in_order(quotes: DataFrame, seed: int) -> Iterator[OrderedQuotes]:
    """Put quotes into the order that the seed decides, and let Spark forget them in the end."""
    with cached(shuffled(quotes, seed)) as frame:
        yield OrderedQuotes(frame, seed, quotes.count(), frame.count())


def build(spark: SparkSession, quotes: DataFrame, plan: ScenarioPlan, out: Path) -> BuildReport:
    """Write the scenario of `plan` with `quotes` into a new folder."""
    plan.check()
    with in_order(quotes, plan.seed) as ordered:
        return build_from(spark, ordered, plan, out)


def build_from(
    spark: SparkSession, ordered: OrderedQuotes, plan: ScenarioPlan, out: Path
) -> BuildReport:
    """Write the scenario of `plan` with quotes in the order of its seed into a new folder."""
    plan.check()
    assert plan.seed == ordered.seed, "a scenario follows from its own seed alone"
    whole = ordered.whole
    sampled = sample_size(whole, plan.selectivity)
    with whole_folder(out) as folder:
        sample = ordered.frame.where(F.col("number") < sampled).orderBy("number").toArrow()
        texts = filter_texts(spark, sample, plan.subscribers, plan.selectivity, plan.seed)
        filters = texts.orderBy("number").toArrow().column("filter").to_pylist()
        clients = Clients(plan)
        subscriptions, publishers = clients.subscriptions(filters), clients.publishers()
        pq.write_table(subscriptions, folder / files.SUBSCRIPTIONS, compression="zstd")
        pq.write_table(publishers, folder / files.PUBLISHERS, compression="zstd")
        held_back = ordered.frame.withColumn("number", F.col("number") - sampled)
        held_back = held_back.where(F.col("number") >= 0)
        published = notifications(spark, plan, clients, held_back, whole - sampled)
        starts, attributes = part_starts(plan, clients), attribute_types(plan)
        write_notifications(published, starts, folder / files.NOTIFICATIONS, attributes)
        (folder / files.DOCUMENT).write_text(plan.document(), encoding="utf-8")
        scenario = files.read_scenario(folder)  # what cannot be read must not be left behind
    return BuildReport(
        quotes=ordered.quotes,
        without_previous_close=ordered.quotes - whole,
        sampled=sampled,
        held_back=whole - sampled,
        subscriptions=len(scenario.subscribers),
        notifications=scenario.notification_count,
    )
