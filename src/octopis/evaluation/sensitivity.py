"""The sensitivity table: the same two small scenarios, with one assumption changed at a time.

Most of the model's costs are assumed, so it matters which results hang on which of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from octopis.core.topology import NamedTopology
from octopis.evaluation.experiments import EvaluationSize, Experiment, Point, base_plan
from octopis.files import whole_folder
from octopis.scenario import folder as files
from octopis.scenario.clients import MS_NS
from octopis.scenario.costs import Profile, profile_named
from octopis.scenario.plan import ScenarioPlan

BASELINE = "as assumed"


@dataclass(frozen=True)
class Variation:
    """One change. Costs are multiplied; the others are set."""

    name: str
    factors: Mapping[str, float] = field(default_factory=dict)
    routing: Mapping[str, Any] = field(default_factory=dict)
    subscribe_every_ms: float | None = None
    profile: str | None = None

    def applies_to(self, profile: Profile) -> bool:
        """Tell whether a profile says all that is changed: else there is nothing to multiply."""
        return all(getattr(profile.costs, cost) is not None for cost in self.factors)

    def of(self, plan: ScenarioPlan, name: str) -> ScenarioPlan:
        """Return the plan with this change."""
        profile = profile_named(self.profile) if self.profile else plan.profile
        changed = {cost: getattr(profile.costs, cost) * by for cost, by in self.factors.items()}
        # Bytes are whole numbers.
        whole = {cost: round(value) for cost, value in changed.items() if cost.endswith("_bytes")}
        costs = replace(profile.costs, **(changed | whole))
        return replace(
            plan,
            name=name,
            profile=Profile(profile.name, costs, profile.sources),
            routing=replace(plan.routing, **self.routing),
            subscribe_every_ms=self.subscribe_every_ms or plan.subscribe_every_ms,
        )


_COSTS = (
    "routing_us",
    "target_routing_us",
    "matching_us",
    "matching_per_subscription_ns",
    "identification_ns",
    "send_overhead_us",
    "latency_us",
    "notification_bytes",
    "identification_bytes",
)

FULL = (
    Variation(BASELINE),
    *(
        Variation(f"{cost} x {factor:g}", factors={cost: factor})
        for cost in _COSTS
        for factor in (0.5, 2)
    ),
    Variation("matching_per_subscription_ns x 0", factors={"matching_per_subscription_ns": 0}),
    Variation("identification_ns x 10", factors={"identification_ns": 10}),
    Variation("tau 5", routing={"congestion_threshold": 5.0}),
    Variation("tau 20", routing={"congestion_threshold": 20.0}),
    Variation("t_w 25 ms", routing={"window_ms": 25.0}),
    Variation("t_w 100 ms", routing={"window_ms": 100.0}),
    Variation("a subscription every 5 ms", subscribe_every_ms=5),
    Variation("a subscription every 3 ms", subscribe_every_ms=3),
    Variation("a subscription every 2 ms", subscribe_every_ms=2),
    Variation("profile octopis", profile="octopis"),
)
_QUICK_NAMES = {
    BASELINE,
    "send_overhead_us x 0.5",
    "send_overhead_us x 2",
    "matching_per_subscription_ns x 0",
    "identification_ns x 10",
    "tau 20",
    "a subscription every 3 ms",
}
VARIATIONS = {
    EvaluationSize.FULL: FULL,
    EvaluationSize.QUICK: tuple(each for each in FULL if each.name in _QUICK_NAMES),
}


def bases(
    size: EvaluationSize, profile: Profile, topology: NamedTopology | None = None
) -> tuple[ScenarioPlan, ScenarioPlan]:
    """Return the two scenarios that are varied: one without a burst, and one with.

    They are small at any size: what matters is how results move.
    """
    scale = 1 if size is EvaluationSize.FULL else 4
    quiet = replace(
        base_plan(profile, topology=topology),
        name="sensitivity-quiet",
        subscribers=1_000 // scale,
        notifications_each=20 // scale,
    )
    burst = replace(
        quiet,
        name="sensitivity-burst",
        subscribers=500,
        notifications_each=200 // scale,
        high_rate_notifications=10_000 // scale,
    )
    return quiet, burst


def points(
    size: EvaluationSize, profile: Profile, topology: NamedTopology | None = None
) -> list[Point]:
    """Return all varied scenarios; the first seed serves."""
    return [
        Point(
            Experiment.SENSITIVITY,
            base.high_rate_notifications,
            variation.of(base, f"{base.name}-{number:02d}"),
            variation=variation.name,
            base=base.name,
        )
        for base in bases(size, profile, topology)
        for number, variation in enumerate(VARIATIONS[size])
        if variation.applies_to(profile)
    ]


def derive(point: Point, base: Path, out: Path) -> None:
    """Write a varied scenario: the base's tables beside another document."""
    with whole_folder(out) as folder:
        for name in (files.PUBLISHERS, files.NOTIFICATIONS):
            files.copy_table(base / name, folder / name)
        subscriptions = pq.read_table(base / files.SUBSCRIPTIONS)
        every_ns = point.plan.subscribe_every_ms * MS_NS
        times = [round(number * every_ns) for number in range(len(subscriptions))]
        place = subscriptions.column_names.index("subscribe_ns")
        subscriptions = subscriptions.set_column(place, "subscribe_ns", pa.array(times, pa.int64()))
        pq.write_table(subscriptions, folder / files.SUBSCRIPTIONS, compression="zstd")
        (folder / files.DOCUMENT).write_text(point.plan.document(), encoding="utf-8")
        files.read_scenario(folder)  # what cannot be read must not be left behind
