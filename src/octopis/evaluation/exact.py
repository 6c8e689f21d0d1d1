"""What must hold exactly in every run: it follows from the overlay's structure, or is promised.

Spark works out for each run how its subscription trees compare with the shortest paths of the
graph (`tree_lengths`); what all runs have to say is then gathered here.
"""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures

TWO_STEP = (Algorithm.SNR, Algorithm.DNR)
BY_STRUCTURE = (*TWO_STEP, Algorithm.TNR)
"""Spread subscriptions by the overlay's structure. TNR would go around a link that is overloaded
while they spread, and take longer then; none is in these experiments."""


def distances(spark: SparkSession, scot: SCOT) -> DataFrame:
    """Return for each broker how far the others are: the longest way, and the mean."""
    others = max(1, len(scot.brokers) - 1)
    rows = []
    for broker in scot.brokers:
        ways = [scot.distance(broker, other) for other in scot.brokers]
        rows.append({"broker": broker.short, "furthest": max(ways), "mean": sum(ways) / others})
    return spark.createDataFrame(pa.Table.from_pylist(rows))


def tree_lengths(subscriptions: DataFrame, far: DataFrame) -> DataFrame:
    """Return for each run how many subscription trees are not of shortest paths, and messages.

    A tree is one of shortest paths if no broker is further from its root than in the graph, and
    the mean is the graph's as well.
    """
    longer = (F.col("tree_length_max") != F.col("furthest")) | (
        F.col("tree_length_mean") != F.col("mean")
    )
    return (
        subscriptions.join(F.broadcast(far), "broker", how="inner")
        .groupBy("run")
        .agg(
            F.count("*").alias("trees"),
            F.count_if(longer).alias("trees_longer"),
            F.min("ims").alias("subscription_ims_min"),
            F.max("ims").alias("subscription_ims_max"),
        )
        .orderBy("run")
    )


@dataclass(frozen=True)
class Exact:
    """One thing that must hold, and what was found."""

    text: str
    found: str
    holds: bool


def exact(measures: Measures) -> list[Exact]:
    """Return everything that must hold, whether it does or not."""
    ours = [run for run in measures.all if run.algorithm in BY_STRUCTURE]
    brokers = {int(run["brokers"]) for run in ours}
    least = min(int(run["subscription_ims_min"]) for run in ours)
    most = max(int(run["subscription_ims_max"]) for run in ours)
    longer, trees = (int(sum(run[name] for run in ours)) for name in ("trees_longer", "trees"))
    dropped = int(sum(run["subscription_duplicates"] for run in ours))
    wrong = [run for run in measures.all if not run.is_exact or run["deliveries_lost"]]
    deliveries = int(sum(run["deliveries"] for run in measures.all))
    differing = _differing(measures)
    return [
        Exact(
            "A subscription takes one message less than there are brokers (SNR, DNR, TNR)",
            f"{least} to {most} messages, {', '.join(map(str, sorted(brokers)))} brokers",
            {least, most} == {brokers.pop() - 1} and not brokers,
        ),
        Exact(
            "Subscription trees are as short as the graph allows (SNR, DNR, TNR)",
            f"{longer:,} of {trees:,} trees are longer",
            not longer,
        ),
        Exact(
            "No subscription reaches a broker twice (SNR, DNR, TNR)",
            f"{dropped:,} duplicates",
            not dropped,
        ),
        Exact(
            "Subscriptions spread alike under SNR and DNR",
            f"{differing} scenarios with another delay",
            not differing,
        ),
        Exact(
            "Deliveries are those of the ground truth: none lost, twice or unasked (all)",
            f"{len(measures.all) - len(wrong)} of {len(measures.all)} runs, "
            f"{deliveries:,} deliveries",
            not wrong,
        ),
    ]


def _differing(measures: Measures) -> int:
    """Count the scenarios whose subscriptions took another time under DNR than under SNR."""
    found: dict[tuple[Experiment, str], set[float]] = {}
    for run in measures.all:
        if run.algorithm in TWO_STEP:
            key = run.point.experiment, run.point.name
            found.setdefault(key, set()).add(run["subscription_delay_mean_ns"])
    return sum(len(delays) > 1 for delays in found.values())
