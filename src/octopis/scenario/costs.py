"""What work costs a simulated broker, and the two profiles that ship.

A broker is one server: a message that it takes in costs `routing_us`, a notification that it
matches also `matching_us` and a little for every subscription that it is matched against, and one
that carries identifications (BID) a little for each. One that carries targets (TNR) costs
`target_routing_us` in place of `routing_us`; where that is not said, so much of BID's step as was
measured. Its sender, which its links share, spends `send_overhead_us` and the message's bytes over
the bandwidth on every copy; then the copy is on its way for the link's latency.
"""

from typing import NamedTuple

import msgspec

from octopis.core.model.suggestion import did_you_mean
from octopis.core.toml import decode, encode_table
from octopis.errors import InvalidConfiguration

_TARGETS_BYTES = 4
"""The clusters that were tried, and what says how long they and the targets are."""


TARGET_STEP = 0.75
"""What TNR's step costs beside BID's: `octopis bench calibrate` measured 0.70 to 0.78 of it."""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the model, as they stand in a scenario under [costs]."""

    routing_us: float
    matching_us: float
    matching_per_subscription_ns: float
    identification_ns: float
    subscription_us: float
    send_overhead_us: float
    bandwidth_mbit_per_s: float
    latency_us: float
    notification_bytes: int
    subscription_bytes: int
    identification_bytes: int
    target_routing_us: float | None = None

    def check(self, where: str) -> None:
        """Raise InvalidConfiguration where a figure makes no sense."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1e9:
                raise InvalidConfiguration(
                    f"{where}: costs.{name} must be 0 or more and below 1e9, not {value}"
                )
        if not self.bandwidth_mbit_per_s:
            raise InvalidConfiguration(f"{where}: costs.bandwidth_mbit_per_s must be above 0")

    @property
    def latency_ns(self) -> int:
        """How long a message is on its way over a link."""
        return round(self.latency_us * 1000)

    @property
    def subscription_ns(self) -> int:
        """The service time of a message about a subscription."""
        return _time((self.routing_us + self.subscription_us) * 1000)

    def matching_ns(self, subscriptions: int) -> int:
        """The part of a service time that is spent on matching against so many subscriptions."""
        return round(self.matching_us * 1000 + self.matching_per_subscription_ns * subscriptions)

    def routing_ns(self, identifications: int = 0) -> int:
        """The part of a notification's service time that is not spent on matching."""
        return _time(self.routing_us * 1000 + self.identification_ns * identifications)

    def target_routing_ns(self, targets: int) -> int:
        """As `routing_ns`, for a copy that carries targets (TNR)."""
        if self.target_routing_us is None:
            return _time(TARGET_STEP * self.routing_ns(targets))
        return _time(self.target_routing_us * 1000)

    @property
    def target_subscription_ns(self) -> int:
        """As `subscription_ns`, where the message carries targets (TNR)."""
        step_us = self.routing_us if self.target_routing_us is None else self.target_routing_us
        return _time((step_us + self.subscription_us) * 1000)

    def send_notification_ns(self, extra_bytes: int = 0) -> int:
        """How long the sender is busy with one copy of a notification."""
        return self._send_ns(self.notification_bytes + extra_bytes)

    def send_subscription_ns(self, extra_bytes: int = 0) -> int:
        """How long the sender is busy with one message about a subscription."""
        return self._send_ns(self.subscription_bytes + extra_bytes)

    def _send_ns(self, size: int) -> int:
        return _time(self.send_overhead_us * 1000 + size * 8_000 / self.bandwidth_mbit_per_s)


def target_bytes(targets: int, brokers: int) -> int:
    """How much longer a message is that carries targets (TNR): a bit map or a list of them."""
    return _TARGETS_BYTES + min((brokers + 7) // 8, 2 * targets)


class Profile(NamedTuple):
    """Costs by name, with the source of each figure."""

    name: str
    costs: Costs
    sources: dict[str, str]


_PAPER = Profile(
    "paper",
    Costs(
        routing_us=50,
        matching_us=20,
        matching_per_subscription_ns=50,
        identification_ns=1000,
        subscription_us=100,
        send_overhead_us=500,
        bandwidth_mbit_per_s=1000,
        latency_us=100,
        notification_bytes=512,
        subscription_bytes=512,
        identification_bytes=16,
    ),
    {
        "routing_us": "assumed: a JVM on a 2.4 GHz core takes a message off its queue and decides",
        "matching_us": "assumed: fixed part of matching 10 attributes",
        "matching_per_subscription_ns": "assumed: about 120 cycles of 2.4 GHz for one subscription",
        "identification_ns": "assumed: look up and move one identification between lists",
        "subscription_us": "assumed: parse and store",
        "send_overhead_us": "assumed: one synchronous Java RMI call on a local network",
        "bandwidth_mbit_per_s": "the paper, section 7.1: a dedicated Gigabit Ethernet switch",
        "latency_us": "assumed: one way through a switch and two network stacks",
        "notification_bytes": "assumed: 10 attributes as serialised Java objects",
        "subscription_bytes": "assumed: as a notification",
        "identification_bytes": "assumed: a broker's name",
    },
)

_OCTOPIS = Profile(
    "octopis",
    Costs(
        routing_us=6,
        matching_us=3.3,
        matching_per_subscription_ns=0.25,
        identification_ns=500,
        subscription_us=85,
        send_overhead_us=4,
        bandwidth_mbit_per_s=1000,
        latency_us=100,
        notification_bytes=220,
        subscription_bytes=160,
        identification_bytes=6,
    ),
    {
        "routing_us": "octopis bench routing: 11.7 us with 10,000 subscriptions, less matching",
        "matching_us": "octopis bench matching: destinations in batches of 64",
        "matching_per_subscription_ns": "octopis bench matching: from 1,000 to 10,000",
        "identification_ns": "assumed: one step of a Python loop over dictionaries",
        "subscription_us": "octopis bench matching: adding 10,000 one by one",
        "send_overhead_us": "assumed: encoding and a coalesced write, in Python",
        "bandwidth_mbit_per_s": "assumed: Gigabit Ethernet",
        "latency_us": "assumed: one way through a switch and two network stacks",
        "notification_bytes": "10 attributes of a stock quote in msgpack",
        "subscription_bytes": "a filter of three ranges as text",
        "identification_bytes": "a broker's name in msgpack",
    },
)

PROFILES = {profile.name: profile for profile in (_PAPER, _OCTOPIS)}


class _ProfileDocument(msgspec.Struct, frozen=True):
    costs: Costs


def parse_profile(text: str, where: str) -> Profile:
    """Return the costs that TOML `text` says under [costs], or raise InvalidConfiguration."""
    costs = decode(text, _ProfileDocument, where).costs
    costs.check(where)
    return Profile(where, costs, dict.fromkeys(costs.__struct_fields__, f"from {where}"))


def format_profile(profile: Profile) -> str:
    """Return the [costs] of a profile as TOML, with the source of each in a comment."""
    comments = {"": f"profile {profile.name}", **profile.sources}
    return encode_table("costs", msgspec.structs.asdict(profile.costs), comments)


def profile_named(name: str) -> Profile:
    """Return a profile, or raise InvalidConfiguration."""
    if name not in PROFILES:
        hint = did_you_mean(name, PROFILES) or f"; there are {', '.join(PROFILES)}"
        raise InvalidConfiguration(f"there is no profile {name!r}{hint}")
    return PROFILES[name]


def _time(nanoseconds: float) -> int:
    """Return a time that is at least 1 ns: work that takes no time would have no order."""
    return max(1, round(nanoseconds))
