"""An overlay's settings: one TOML document, then the environment, then flags.

    insecure = false                  # true: brokers may listen where other machines reach them

    [topology]                        # as in topology files: catalogue, or name and factors
    catalogue = "figure-3"

    [routing]
    algorithm = "tnr"

    [links]                           # slows down every direction of every link ...
    latency_ms = 1.0
    [[links.shape]]                   # ... and this one differently
    source = "b,2"
    target = "b,0"
    bandwidth_bytes_per_s = 20000.0

    [brokers."b,2"]
    host = "127.0.0.1"
    port = 7402

    [security]                        # who is let in, and what they may do: see docs/live.md
    folder = "security"

Only [topology] is needed; everything else has a default. `OCTOPIS_ROUTING_ALGORITHM=snr` stands for
`algorithm` under [routing], and so for every key of [routing], [delivery], [durability], [queues],
[client_queues], [links], [limits], [security], [metrics] and [tracing]; `OCTOPIS_INSECURE` for
`insecure`. What an overlay is written out to is complete: it can be read, changed and kept.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_origin

import msgspec
from msgspec import Meta, Struct, field, structs

from octopis.broker.settings import (
    DEFAULT_ROUTING,
    ClientQueues,
    Durability,
    Limits,
    LinkQueues,
    Metrics,
    OverlayConfiguration,
    SecurityOptions,
    Shape,
)
from octopis.broker.telemetry.options import SpanOptions
from octopis.client.address import Address
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.model import BrokerId
from octopis.core.model.suggestion import did_you_mean
from octopis.core.routing.options import RoutingOptions
from octopis.core.toml import convert, described, encode_table, encode_text, encode_value, read
from octopis.core.topology import SCOT, NamedTopology, format_topology
from octopis.core.topology.document import TopologyDocument, topology_of
from octopis.errors import InvalidConfiguration, OctopisError

PORT_MAX = 65_535
_PREFIX = "OCTOPIS_"
_Made = TypeVar("_Made")


# What a document may say


class DirectedShape(Shape, frozen=True, kw_only=True):
    """What one direction of a link is slowed down to; what is not said is as in [links]."""

    source: Annotated[str, Meta(description="the broker that the direction comes from")]
    target: Annotated[str, Meta(description="the neighbour that it goes to")]


class LinksTable(Shape, frozen=True):
    """What all links are slowed down to, and exceptions by direction."""

    shape: tuple[DirectedShape, ...] = ()


class BrokerTable(Struct, frozen=True):
    """Where a broker listens; port 0 stands for any that is free."""

    host: Annotated[str, Meta(description="where it listens")] = Address().host
    port: Annotated[int, Meta(ge=0, le=PORT_MAX, description="0: any, or as `overlay up` says")] = 0
    link_port: Annotated[
        int, Meta(ge=0, le=PORT_MAX, description="for its neighbours, under security; 0: as `port`")
    ] = 0


class OverlayDocument(TopologyDocument, frozen=True, kw_only=True):
    """The tables of an overlay's document."""

    insecure: Annotated[
        bool, Meta(description="brokers may listen where other machines reach them")
    ] = False
    routing: RoutingOptions = DEFAULT_ROUTING
    delivery: DeliveryOptions = DeliveryOptions()
    durability: Durability = Durability()
    queues: LinkQueues = LinkQueues()
    client_queues: ClientQueues = ClientQueues()
    links: LinksTable = LinksTable()
    limits: Limits = Limits()
    security: SecurityOptions = SecurityOptions()
    metrics: Metrics = Metrics()
    tracing: SpanOptions = SpanOptions()
    brokers: dict[str, BrokerTable] = field(default_factory=dict)


_SHARED = [
    name
    for name in OverlayConfiguration.__struct_fields__
    if name in OverlayDocument.__struct_fields__
]
"""What a configuration has as the document says it, under the same names."""


@dataclass(frozen=True)
class NamedOverlay:
    """An overlay as it is to run, and what its topology is called."""

    topology: NamedTopology
    configuration: OverlayConfiguration


# Reading


def parse_overlay(text: str, where: str) -> NamedOverlay:
    """Return the overlay that TOML `text` describes; `where` names the file in errors."""
    return overlay_of(read(text, where), where)


def overlay_of(tables: Mapping[str, Any], where: str) -> NamedOverlay:
    """Return the overlay that the tables of a document describe.

    Raises InvalidConfiguration, or the topology's own error, where they make no sense.
    """
    document = convert(_completed(tables), OverlayDocument, where)
    topology = topology_of(document, where)
    scot = topology.scot
    placed = _placed(document.brokers, scot, where)
    configuration = OverlayConfiguration(
        scot=scot,
        shapes=_shapes(document.links, scot, where),
        addresses={broker: Address(each.host, each.port) for broker, each in placed.items()},
        link_ports={broker: each.link_port for broker, each in placed.items() if each.link_port},
        **{name: getattr(document, name) for name in _SHARED},
    )
    for broker in scot.brokers:
        _said_where(f"{where}: brokers", configuration.address, broker)
    return NamedOverlay(topology, configuration)


def _completed(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables with what they leave to a default that depends on other tables."""
    found = dict(tables)
    if isinstance(routing := tables.get("routing"), dict):
        found["routing"] = {"algorithm": DEFAULT_ROUTING.algorithm.value, **routing}
    links = tables.get("links")
    if isinstance(links, dict) and isinstance(shapes := links.get("shape"), list):
        common = {key: value for key, value in links.items() if key != "shape"}
        merged = [{**common, **each} if isinstance(each, dict) else each for each in shapes]
        found["links"] = {**common, "shape": merged}
    return found


def _shapes(links: LinksTable, scot: SCOT, where: str) -> dict[tuple[BrokerId, BrokerId], Shape]:
    everywhere = _shape(links)
    shapes = {}
    if everywhere != Shape():
        shapes = {
            (broker, other): everywhere
            for broker in scot.brokers
            for other in scot.neighbours(broker)
        }
    for number, table in enumerate(links.shape):
        place = f"{where}: links.shape[{number}]"
        ends = tuple(_said_where(place, scot.broker, end) for end in (table.source, table.target))
        _said_where(place, scot.link_kind, *ends)
        shapes[ends[0], ends[1]] = _shape(table)
    return shapes


def _shape(table: Shape) -> Shape:
    return Shape(*(getattr(table, name) for name in Shape.__struct_fields__))


def _placed(
    brokers: Mapping[str, BrokerTable], scot: SCOT, where: str
) -> dict[BrokerId, BrokerTable]:
    placed: dict[BrokerId, BrokerTable] = {}
    for name, table in brokers.items():
        place = f'{where}: brokers."{name}"'
        broker = _said_where(place, scot.broker, name)
        if broker in placed:
            raise InvalidConfiguration(f"{place}: {broker} is there twice; remove one")
        placed[broker] = table
    return placed


def _said_where(where: str, make: Callable[..., _Made], *facts: object) -> _Made:
    """Return what `make` makes; where it refuses, the error says the place in the document."""
    try:
        return make(*facts)
    except OctopisError as failure:
        raise InvalidConfiguration(f"{where}: {failure}") from failure


# Writing


def format_overlay(overlay: NamedOverlay) -> str:
    """Return TOML text that `parse_overlay` reads back as the same overlay."""
    configuration = overlay.configuration
    insecure = described(OverlayDocument, "insecure")
    tables = [
        f"insecure = {encode_value(configuration.insecure)}  # true: {insecure}\n",
        format_topology(overlay.topology),
    ]
    tables += [
        encode_table(name, _as_declared(settings))
        for name in _SHARED
        if isinstance(settings := getattr(configuration, name), Struct)
    ]
    for (source, target), shape in configuration.shapes.items():
        ends = {"source": source.short, "target": target.short}
        tables.append(encode_table("[links.shape]", ends | _as_declared(shape)))
    for broker in configuration.scot.brokers:
        place = configuration.address(broker)._asdict()
        if configuration.is_secure:
            place["link_port"] = configuration.link_ports.get(broker, 0)
        tables.append(encode_table(f"brokers.{encode_text(broker.short)}", place))
    return "\n".join(tables)


def _as_declared(settings: Struct) -> dict[str, Any]:
    """Return settings as they would have been read: a whole number is a float where one belongs."""
    tables = msgspec.to_builtins(settings)
    return structs.asdict(msgspec.convert(tables, type(settings)))


# The environment and flags

Flags = Mapping[tuple[str, str], Any]
"""Values by table and key; None where the flag was not given."""


def variables() -> dict[str, tuple[str, str]]:
    """Return the table and the key that each variable of the environment stands for."""
    places = [("", "insecure")]
    for table, struct in _tables().items():
        keys = [each.name for each in structs.fields(struct) if get_origin(each.type) is not tuple]
        places += [(table, key) for key in keys]
    return {_PREFIX + "_".join(filter(None, place)).upper(): place for place in places}


def configured(
    text: str, where: str, environment: Mapping[str, str], flags: Flags | None = None
) -> NamedOverlay:
    """Return the overlay of a document, with what the environment and then flags say instead."""
    tables = read(text, where)
    changes = _from_environment(environment)
    if changes:
        where = f"{where} and the environment"
    changes |= {place: value for place, value in (flags or {}).items() if value is not None}
    for (table, key), value in changes.items():
        inside = tables.setdefault(table, {}) if table else tables
        if isinstance(inside, dict):  # where it is not, reading the document says so
            inside[key] = value
    return overlay_of(tables, where)


def _tables() -> dict[str, type[Struct]]:
    """Return the tables of single settings; those that describe the topology are none."""
    return {
        each.name: each.type
        for each in structs.fields(OverlayDocument)
        if isinstance(each.type, type(Struct))
        and each.name not in TopologyDocument.__struct_fields__
    }


def _from_environment(environment: Mapping[str, str]) -> dict[tuple[str, str], Any]:
    known = variables()
    tables = tuple(f"{_PREFIX}{table.upper()}_" for table in _tables())
    found = {}
    for name, text in environment.items():
        if name in known:
            found[known[name]] = _value(text)
        elif name.startswith(tables):
            hint = did_you_mean(name, known) or "; see docs/live.md for those that there are"
            raise InvalidConfiguration(f"there is no setting for the variable {name}{hint}")
    return found


def _value(text: str) -> Any:
    """Return a number or a boolean where `text` is one as TOML has it, and text otherwise."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, int | float | bool | str) else text
