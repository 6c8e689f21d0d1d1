"""What the demonstration plays: stock quotes, and one publisher that sends far more than others."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from octopis.pipeline.build import build
from octopis.pipeline.synthetic import synthetic_quotes
from octopis.pipeline.truth import FOLDER, write_truth
from octopis.routing import Algorithm
from octopis.topology import from_catalogue
from octopis.workload.folder import Scenario, read_scenario
from octopis.workload.plan import Plan
from octopis.workload.scenario import RoutingOptions

SEED = 7
"""With it a subscriber sits right behind the slowed link, so that no algorithm can avoid that link
by the luck of its tree; with other seeds, BID's tree may lead past it."""

SPEED = 2.5
"""The high-rate publisher starts after 5 s of the scenario: 2 s here."""

TOPOLOGY = "figure-3"
_DAYS = 20
_PER_MINUTE = 240
_HIGH_RATE_PER_MINUTE = 9_600
_SELECTIVITY = 0.05

SPARK_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    # A session of seconds, with small frames: compiling costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is played."""

    subscribers: int
    publishers: int
    notifications_each: int
    high_rate_notifications: int


SIZES = {
    "full": Size(
        subscribers=60, publishers=8, notifications_each=60, high_rate_notifications=1_600
    ),
    "small": Size(subscribers=20, publishers=3, notifications_each=10, high_rate_notifications=300),
}


@dataclass(frozen=True)
class Prepared:
    """A scenario with its ground truth."""

    scenario: Scenario
    due: int
    """How many deliveries the ground truth asks for."""


def plan_of(size: Size, seed: int) -> Plan:
    """Return the plan of the demonstration's scenario."""
    return Plan(
        routing=RoutingOptions(Algorithm.DNR),
        name="demo",
        topology=from_catalogue(TOPOLOGY),
        subscribers=size.subscribers,
        publishers=size.publishers,
        notifications_each=size.notifications_each,
        per_minute=_PER_MINUTE,
        high_rate_notifications=size.high_rate_notifications,
        high_rate_per_minute=_HIGH_RATE_PER_MINUTE,
        selectivity=_SELECTIVITY,
        seed=seed,
    )


def prepare(spark: SparkSession, plan: Plan, folder: Path) -> Prepared:
    """Build the scenario and its ground truth into a new folder, on Spark."""
    build(spark, synthetic_quotes(spark, plan.seed, _DAYS), plan, folder)
    scenario = read_scenario(folder)
    report = write_truth(spark, scenario, folder / FOLDER)
    return Prepared(scenario, report.pairs)
