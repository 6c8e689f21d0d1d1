"""A scenario's document: its overlay, routing, queues, faults, costs and seed, as TOML.

On disk a scenario is a folder: this document, `scenario.toml`, beside three tables of who does what
(see tables.py and publications.py). Times of notifications and faults count from the moment when
all subscriptions have settled. Written out, every cost has its source in a comment.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from octopis.core.delivery.options import DeliveryOptions, Level
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.toml import decode, described, encode_table
from octopis.core.topology import NamedTopology, catalogue_names, format_topology, from_catalogue
from octopis.core.topology.document import TopologyDocument, topology_of
from octopis.errors import InvalidConfiguration, InvalidTopology
from octopis.scenario.costs import Costs, Profile, format_profile

Policy = Literal["drop_newest", "drop_oldest", "stop"]
"""What happens to a copy for a full output queue: it is dropped, the oldest is, or the run ends."""

_ROUTING_COMMENTS = {
    "algorithm": "snr, dnr, bid or tnr",
    "congestion_threshold": "tau",
    "window_ms": "t_w",
}
_QUEUE_COMMENTS = {
    "": "one output queue for each direction of each link",
    "policy": "at the bound: drop_newest, drop_oldest or stop",
}
_DELIVERY_COMMENTS = {
    name: described(DeliveryOptions, name) for name in DeliveryOptions.__struct_fields__
}
ROUTING_ALONE = DeliveryOptions(level=Level.NONE)
"""Whatever a full queue or a cut link loses is lost: what the paper compares."""


class Heading(msgspec.Struct, frozen=True):
    """What the scenario is called, and the seed that its tables were made from."""

    name: str
    seed: int
    description: str = ""


class QueueOptions(msgspec.Struct, frozen=True):
    """How long an output queue may become, and what happens then."""

    capacity_messages: Annotated[int, Meta(ge=1)] = 100_000
    policy: Policy = "drop_newest"


class SlowLink(msgspec.Struct, frozen=True):
    """A link that takes `factor` times as long for every message, in one direction."""

    source: str
    target: str
    factor: float
    begin_ms: float
    end_ms: float


class CutLink(msgspec.Struct, frozen=True):
    """A link that is down, in both directions."""

    source: str
    target: str
    begin_ms: float
    end_ms: float


class DeadBroker(msgspec.Struct, frozen=True):
    """A broker that is dead during the whole run, with all its links and clients."""

    broker: str


Fault = SlowLink | CutLink | DeadBroker
_TABLES = {SlowLink: "slow_links", CutLink: "cut_links", DeadBroker: "dead_brokers"}


class ScenarioDocument(TopologyDocument, frozen=True, kw_only=True):
    """The tables of `scenario.toml`."""

    scenario: Heading
    routing: RoutingOptions
    delivery: DeliveryOptions = ROUTING_ALONE
    queues: QueueOptions = QueueOptions()
    costs: Costs
    slow_links: tuple[SlowLink, ...] = ()
    cut_links: tuple[CutLink, ...] = ()
    dead_brokers: tuple[DeadBroker, ...] = ()

    @property
    def has_channels(self) -> bool:
        """Whether hosts number what they send each other, and send again what is lost."""
        return self.delivery.level is not Level.NONE


def parse_scenario(text: str, where: str) -> tuple[ScenarioDocument, NamedTopology]:
    """Return the document and its overlay, or raise an error that says what is wrong."""
    document = decode(text, ScenarioDocument, where)
    topology = topology_of(document, where)
    document.costs.check(where)
    if not document.scenario.name:
        raise InvalidConfiguration(f"{where}: scenario.name is empty")
    for kind in ("slow_links", "cut_links"):
        faults: tuple[SlowLink | CutLink, ...] = getattr(document, kind)
        for number, fault in enumerate(faults):
            place = f"{where}: {kind}[{number}]"
            _check_fault(fault, topology, place)
            for before, other in enumerate(faults[:number]):
                if _overlap(fault, other, topology):
                    raise InvalidConfiguration(f"{place} and [{before}] overlap: make them one")
    dead_brokers(document, topology, where)
    check_delivery(document.routing, document.delivery, where)
    return document, topology


def check_delivery(routing: RoutingOptions, delivery: DeliveryOptions, where: str) -> None:
    """Raise InvalidConfiguration where an algorithm cannot keep what delivery promises."""
    if delivery.level is not Level.NONE and routing.algorithm is not Algorithm.TNR:
        raise InvalidConfiguration(
            f'{where}: the delivery level "{delivery.level.value}" needs target routing, and the '
            f'algorithm is {routing.algorithm.value}: choose tnr, or the level "none"'
        )


def dead_brokers(
    document: ScenarioDocument, topology: NamedTopology, where: str
) -> frozenset[BrokerId]:
    """Return the brokers that are dead, or raise InvalidConfiguration."""
    try:
        found = [topology.scot.broker(each.broker) for each in document.dead_brokers]
    except InvalidTopology as failure:
        raise InvalidConfiguration(f"{where}: dead_brokers: {failure}") from failure
    if len(set(found)) < len(found):
        raise InvalidConfiguration(f"{where}: dead_brokers: a broker is there twice")
    if len(found) == len(topology.scot.brokers):
        raise InvalidConfiguration(f"{where}: dead_brokers: one broker at least must live")
    if found and document.cut_links:
        raise InvalidConfiguration(f"{where}: a run has dead brokers or cut links, not both")
    return frozenset(found)


def _ends(fault: SlowLink | CutLink, topology: NamedTopology) -> tuple[BrokerId, BrokerId]:
    return topology.scot.broker(fault.source), topology.scot.broker(fault.target)


def _overlap(one: SlowLink | CutLink, other: SlowLink | CutLink, topology: NamedTopology) -> bool:
    """Tell whether two faults of a kind hold for the same link at the same time."""
    ends, others = _ends(one, topology), _ends(other, topology)
    both_ways = isinstance(one, CutLink) and ends == others[::-1]
    meet = one.begin_ms < other.end_ms and other.begin_ms < one.end_ms
    return meet and (ends == others or both_ways)


def _check_fault(fault: SlowLink | CutLink, topology: NamedTopology, where: str) -> None:
    try:
        topology.scot.link_kind(*_ends(fault, topology))
    except InvalidTopology as failure:
        raise InvalidConfiguration(f"{where}: {failure}") from failure
    if not 0 <= fault.begin_ms < fault.end_ms < 1e12:
        raise InvalidConfiguration(f"{where}: begin_ms must be 0 or more and before end_ms")
    if isinstance(fault, SlowLink) and not 1 <= fault.factor < 1e9:
        raise InvalidConfiguration(f"{where}: factor must be 1 or more, not {fault.factor}")


def format_scenario(  # noqa: PLR0913 - the tables of one document
    heading: Heading,
    topology: NamedTopology,
    routing: RoutingOptions,
    *,
    profile: Profile,
    queues: QueueOptions,
    delivery: DeliveryOptions = ROUTING_ALONE,
    faults: tuple[Fault, ...] = (),
) -> str:
    """Return the text of a `scenario.toml`."""
    description = heading.description or None
    tables = [
        encode_table(
            "scenario", {"name": heading.name, "description": description, "seed": heading.seed}
        ),
        _topology(topology),
        encode_table("routing", msgspec.structs.asdict(routing), _ROUTING_COMMENTS),
        encode_table("queues", msgspec.structs.asdict(queues), _QUEUE_COMMENTS),
        format_profile(profile),
    ]
    if delivery != ROUTING_ALONE:
        options = msgspec.to_builtins(delivery)
        tables.insert(3, encode_table("delivery", options, _DELIVERY_COMMENTS))
    tables += [
        encode_table(f"[{_TABLES[type(fault)]}]", msgspec.structs.asdict(fault)) for fault in faults
    ]
    return "\n".join(tables)


def _topology(topology: NamedTopology) -> str:
    for name in catalogue_names():
        if from_catalogue(name) == topology:
            return encode_table("topology", {"catalogue": name})
    return format_topology(topology)
