"""Build: ingested rows become a scenario that the simulator and live overlays read.

Everything depends on the plan's seed and the rows, and on nothing else: not on partitions,
cores, or the order in which anything was read.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from octopis.errors import InvalidConfiguration
from octopis.files import whole_folder
from octopis.pipeline.ingest.folder import Data
from octopis.pipeline.scenarios.notifications import (
    NUMBER,
    NumberedRows,
    notifications,
    part_starts,
    with_high_rate,
    write_notifications,
)
from octopis.pipeline.scenarios.recording import Replay, known_rows, publisher_names, replayed
from octopis.pipeline.scenarios.subscriptions import Wanted, filter_texts, sample_size, shuffled
from octopis.pipeline.spark.session import cached
from octopis.scenario import folder as files
from octopis.scenario.clients import Clients, attribute_types
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.wanted import WantedSubscription, check_known


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario was built from."""

    rows: int
    set_aside: int
    """Rows that lack an attribute which they need: the one that says when or by whom they are
    published, or any, where only whole rows are published (quotes without a previous close)."""
    sampled: int
    held_back: int
    """Rows that made no subscription; these are published."""
    publishers: int
    subscriptions: int
    notifications: int


class Choices(NamedTuple):
    """What a user says of a scenario beside its plan."""

    subscriptions: Sequence[WantedSubscription] | None = None
    """Those that are written down; without them they are drawn."""
    replay: Replay = Replay()

    def check(self, plan: ScenarioPlan, data: Data) -> None:
        """Raise InvalidConfiguration where the data, or the plan, does not fit."""
        self.replay.check(data)
        if self.subscriptions is None:
            return
        check_known(self.subscriptions, data.attributes)
        if plan.high_rate_notifications:
            raise InvalidConfiguration(
                "a high-rate publisher comes with subscriptions of its own: leave out --high-rate, "
                "or --subscriptions"
            )


class OrderedRows(NamedTuple):
    """Rows in the order of a seed, which Spark keeps: several scenarios may be built of them."""

    data: Data
    """With its rows numbered."""
    seed: int
    rows: int
    """Those that were given."""
    usable: int
    """Those of them that can be published."""


@contextmanager
def in_order(data: Data, seed: int, replay: Replay = Replay()) -> Iterator[OrderedRows]:  # noqa: B008 - never changes
    """Put rows into the order that the seed decides, and let Spark forget them in the end."""
    usable = data._replace(frame=known_rows(data.frame, replay))
    with cached(shuffled(usable, seed)) as frame:
        numbered = data._replace(frame=frame)
        yield OrderedRows(numbered, seed, data.frame.count(), frame.count())


def build(
    spark: SparkSession,
    data: Data,
    plan: ScenarioPlan,
    out: Path,
    choices: Choices = Choices(),  # noqa: B008 - never changes
) -> BuildReport:
    """Write the scenario of `plan` with the rows of `data` into a new folder."""
    plan.check()
    choices.check(plan, data)
    with in_order(data, plan.seed, choices.replay) as ordered:
        return build_from(spark, ordered, plan, out, choices)


def build_from(
    spark: SparkSession,
    ordered: OrderedRows,
    plan: ScenarioPlan,
    out: Path,
    choices: Choices = Choices(),  # noqa: B008 - never changes
) -> BuildReport:
    """Write the scenario of `plan` with rows in the order of its seed into a new folder."""
    plan.check()
    assert plan.seed == ordered.seed, "a scenario follows from its own seed alone"
    data, wanted = ordered.data, choices.subscriptions
    sampled = 0
    if wanted is None:
        sampled = sample_size(ordered.usable, plan.selectivity, data.name)
    else:
        plan = replace(plan, subscribers=len(wanted))
    held_back = data.frame.withColumn(NUMBER, F.col(NUMBER) - sampled).where(F.col(NUMBER) >= 0)
    names = publisher_names(held_back, choices.replay)
    if names is not None:
        plan = replace(plan, publishers=len(names))
    clients = Clients(plan, names)
    attributes = attribute_types(plan, _types(data))
    with whole_folder(out.absolute()) as folder:
        if wanted is None:
            subscriptions = clients.subscriptions(_drawn(spark, data, plan, sampled))
        else:
            subscriptions = clients.own_subscriptions(wanted)
        pq.write_table(subscriptions, folder / files.SUBSCRIPTIONS, compression="zstd")
        pq.write_table(clients.publishers(), folder / files.PUBLISHERS, compression="zstd")
        rows = NumberedRows(held_back, ordered.usable - sampled, attributes)
        with _published(spark, data, rows, plan, clients, choices.replay) as (frame, starts):
            write_notifications(frame, starts, folder / files.NOTIFICATIONS, attributes)
        (folder / files.DOCUMENT).write_text(plan.document(), encoding="utf-8")
        scenario = files.read_scenario(folder)  # what cannot be read must not be left behind
    return BuildReport(
        rows=ordered.rows,
        set_aside=ordered.rows - ordered.usable,
        sampled=sampled,
        held_back=ordered.usable - sampled,
        publishers=len(scenario.publishers),
        subscriptions=len(scenario.subscribers),
        notifications=scenario.notification_count,
    )


def _types(data: Data) -> dict[str, pa.DataType]:
    """Return the attributes as notifications hold them."""
    schema = to_arrow_schema(data.frame.select(*data.columns).schema)
    return {field.name: field.type for field in schema}


def _drawn(spark: SparkSession, data: Data, plan: ScenarioPlan, sampled: int) -> list[str]:
    """Return the filters of all subscribers, from the first rows."""
    sample = data.frame.where(F.col(NUMBER) < sampled).orderBy(NUMBER).toArrow()
    by_value = [name for name, each in data.attributes.items() if each.subscribe_by == "values"]
    wanted = Wanted(plan.subscribers, plan.selectivity, plan.seed, frozenset(by_value), data.name)
    texts = filter_texts(spark, sample, wanted).orderBy("number").toArrow()
    found: list[str] = texts.column("filter").to_pylist()
    return found


@contextmanager
def _published(  # noqa: PLR0913, PLR0917 - all that decides what is published
    spark: SparkSession,
    data: Data,
    rows: NumberedRows,
    plan: ScenarioPlan,
    clients: Clients,
    replay: Replay,
) -> Iterator[tuple[DataFrame, list[int]]]:
    """Give the notifications, and when all parts of their table but the first begin."""
    if not replay.is_asked_for:
        yield notifications(spark, plan, clients, rows), part_starts(plan, clients)
        return
    recorded = data._replace(frame=rows.frame)
    with replayed(spark, recorded, replay, plan, clients, rows.attributes) as (frame, starts):
        yield with_high_rate(spark, frame, plan, clients, rows.attributes), starts
