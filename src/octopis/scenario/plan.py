"""How large a scenario is, and how it is run.

Each number of a plan is declared once, in ScenarioPlan: its bounds, what it means, and what it is
called on the command line and in tables of runs. Options, keys, names of runs and checks follow.
"""

from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, field
from msgspec.structs import fields

from octopis.core.delivery.options import DeliveryOptions
from octopis.core.routing.options import RoutingOptions
from octopis.core.toml import bounds, described, is_within
from octopis.core.topology import NamedTopology, from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.scenario.costs import Profile, profile_named
from octopis.scenario.document import (
    ROUTING_ALONE,
    Fault,
    Heading,
    QueueOptions,
    check_delivery,
    format_scenario,
)

MINUTES_MAX = 1_000_000
"""About two years: all times of a run then fit in 64 bits."""

_RATE_MIN, _RATE_MAX = 0.001, 1_000_000_000


class ScenarioPlan(Struct, frozen=True, kw_only=True):
    """How large the scenario is and how it is run. Rates are per minute, as in the paper."""

    routing: RoutingOptions
    name: str = "example"
    topology: NamedTopology = field(default_factory=lambda: from_catalogue("figure-3"))
    profile: Profile = field(default_factory=lambda: profile_named("paper"))
    queues: QueueOptions = QueueOptions()
    delivery: DeliveryOptions = ROUTING_ALONE
    faults: tuple[Fault, ...] = ()

    subscribers: Annotated[int, Meta(ge=0, description="Clients with one subscription each.")] = 100
    publishers: Annotated[int, Meta(ge=0, description="Clients that publish rows of the data.")] = (
        10
    )
    notifications_each: Annotated[int, Meta(ge=0, description="How many each publisher sends.")] = (
        field(default=100, name="notifications")
    )
    per_minute: Annotated[
        float, Meta(ge=_RATE_MIN, le=_RATE_MAX, description="How many it sends in a minute.")
    ] = 60
    high_rate_notifications: Annotated[
        int, Meta(ge=0, description="Notifications of one high-rate publisher; 0 for none.")
    ] = field(default=0, name="high_rate")
    high_rate_per_minute: Annotated[
        float, Meta(ge=_RATE_MIN, le=_RATE_MAX, description="Its rate.")
    ] = 100_000
    high_rate_publishers: Annotated[
        int, Meta(ge=1, description="How many of them, each in a cluster of its own.")
    ] = 1
    subscribe_every_ms: Annotated[
        float, Meta(ge=0, le=60_000, description="The time between two subscriptions.")
    ] = 10
    selectivity: Annotated[
        float,
        Meta(ge=0.001, le=0.5, description="The share of rows that each subscription matches."),
    ] = 0.02
    seed: Annotated[int, Meta(ge=0, description="The same seed gives the same scenario.")] = 1

    def check(self) -> None:
        """Raise InvalidConfiguration where a number makes no sense, alone or with others."""
        for number in PLAN_NUMBERS:
            number.check(getattr(self, number.field))
        check_delivery(self.routing, self.delivery, self.name)
        clusters = len(self.topology.scot.clusters)
        if self.high_rate_publishers > clusters:
            raise InvalidConfiguration(
                f"{self.topology.name} has {clusters} clusters, so from 1 to {clusters} high-rate "
                f"publishers, one in each, and not {self.high_rate_publishers}"
            )
        minutes = max(
            self.notifications_each / self.per_minute,
            self.high_rate_notifications / self.high_rate_per_minute,
        )
        if minutes > MINUTES_MAX:
            raise InvalidConfiguration(
                f"at these rates the last notification is due after {minutes:,.0f} minutes; "
                f"a scenario lasts {MINUTES_MAX:,} at most"
            )

    def document(self) -> str:
        """Return the text of the scenario's document."""
        return format_scenario(
            Heading(self.name, self.seed),
            self.topology,
            self.routing,
            profile=self.profile,
            queues=self.queues,
            delivery=self.delivery,
            faults=self.faults,
        )


@dataclass(frozen=True, slots=True)
class PlanNumber:
    """One number of a plan, as ScenarioPlan declares it."""

    field: str
    key: str
    """What it is called in tables of runs, and on the command line with dashes."""
    kind: type[int] | type[float]
    declared: Any
    """The kind with its bounds."""
    default: float
    meaning: str

    def check(self, value: float) -> None:
        """Raise InvalidConfiguration where a value is out of bounds."""
        if not is_within(value, self.declared):
            raise InvalidConfiguration(f"{self.key} must be {bounds(self.declared)}, not {value}")


def _numbers() -> tuple[PlanNumber, ...]:
    found = []
    for declared in fields(ScenarioPlan):
        if get_origin(declared.type) is not Annotated:
            continue
        assert declared.default is not NODEFAULT, "every number has a default"
        found.append(
            PlanNumber(
                declared.name,
                declared.encode_name,
                get_args(declared.type)[0],
                declared.type,
                declared.default,
                described(ScenarioPlan, declared.name),
            )
        )
    return tuple(found)


PLAN_NUMBERS = _numbers()
"""The numbers of a plan, in their order."""


def plan_from(numbers: dict[str, Any], **others: Any) -> ScenarioPlan:
    """Return a checked plan with some of its numbers by their keys; the others have defaults."""
    names = {number.key: number.field for number in PLAN_NUMBERS}
    plan = ScenarioPlan(**{names[key]: value for key, value in numbers.items()}, **others)
    plan.check()
    return plan
