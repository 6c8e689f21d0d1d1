"""How large a scenario of stock quotes is, and how it is run."""

from dataclasses import dataclass, field

from octopis.core.topology import NamedTopology, from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.scenario.costs import Profile, profile_named
from octopis.scenario.document import (
    CutLink,
    Heading,
    QueueOptions,
    RoutingOptions,
    SlowLink,
    format_scenario,
)

MINUTES_MAX = 1_000_000
"""About two years: all times of a run then fit in 64 bits."""


@dataclass(frozen=True, kw_only=True)
class ScenarioPlan:
    """How large the scenario is and how it is run. Rates are per minute, as in the paper."""

    routing: RoutingOptions
    name: str = "example"
    topology: NamedTopology = field(default_factory=lambda: from_catalogue("figure-3"))
    profile: Profile = field(default_factory=lambda: profile_named("paper"))
    queues: QueueOptions = field(default_factory=QueueOptions)
    faults: tuple[SlowLink | CutLink, ...] = ()
    subscribers: int = 100
    publishers: int = 10
    notifications_each: int = 100
    per_minute: float = 60
    subscribe_every_ms: float = 10
    high_rate_notifications: int = 0
    high_rate_per_minute: float = 100_000
    high_rate_publishers: int = 1
    """Each in a cluster of its own; counts only where there are such notifications."""
    selectivity: float = 0.02
    seed: int = 1

    def check(self) -> None:
        """Raise InvalidConfiguration where a number makes no sense."""
        counts = {
            "subscribers": self.subscribers,
            "publishers": self.publishers,
            "notifications": self.notifications_each,
            "notifications at a high rate": self.high_rate_notifications,
            "the seed": self.seed,
        }
        for name, count in counts.items():
            if count < 0:
                raise InvalidConfiguration(f"{name} must be 0 or more, not {count}")
        for rate in (self.per_minute, self.high_rate_per_minute):
            if not 0.001 <= rate <= 1e9:
                raise InvalidConfiguration(f"a rate per minute is from 0.001 to 1e9, not {rate}")
        if not 0 <= self.subscribe_every_ms <= 60_000:
            raise InvalidConfiguration("subscriptions are from 0 to 60,000 ms apart")
        clusters = len(self.topology.scot.clusters)
        if not 1 <= self.high_rate_publishers <= clusters:
            raise InvalidConfiguration(
                f"{self.topology.name} has {clusters} clusters, so from 1 to {clusters} high-rate "
                f"publishers, one in each, and not {self.high_rate_publishers}"
            )
        if not 0.001 <= self.selectivity <= 0.5:
            raise InvalidConfiguration("selectivity must be between 0.001 and 0.5")
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
            faults=self.faults,
        )
