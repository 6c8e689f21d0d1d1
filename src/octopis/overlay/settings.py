"""What comes after the file: the environment, then flags.

`OCTOPIS_ROUTING_ALGORITHM=snr` stands for `algorithm` under `[routing]`, and so for every key of
[routing], [queues], [client_queues], [links] and [limits]; `OCTOPIS_INSECURE` for `insecure`.

An overlay's configuration as one TOML document.

    insecure = false                  # true: brokers may listen where other machines reach them

    [topology]                        # as in topology files: catalogue, or name and factors
    catalogue = "figure-3"

    [routing]
    algorithm = "dnr"

    [links]                           # slows down every direction of every link ...
    latency_ms = 1.0
    [[links.shape]]                   # ... and this one differently
    source = "b,2"
    target = "b,0"
    bandwidth_bytes_per_s = 20000.0

    [brokers."b,2"]
    host = "127.0.0.1"
    port = 7402

Only [topology] is needed; everything else has a default. The environment and flags come after the
file: see overrides.py.

Writes an overlay's configuration as TOML: complete, so that it can be read, changed and kept.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field, structs

from octopis.broker.settings import (
    ClientPolicy,
    Limits,
    LinkPolicy,
    OverlayConfiguration,
    QueueBounds,
    Shape,
)
from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.model.suggestion import did_you_mean
from octopis.core.routing import CONGESTION_THRESHOLD, WINDOW_MS, Algorithm
from octopis.core.toml import convert, encode_text, read
from octopis.core.topology import SCOT, NamedTopology, format_topology
from octopis.core.topology.document import TopologyDocument, topology_of
from octopis.errors import InvalidConfiguration, OctopisError

PORT_MAX = 65_535
_BOUNDS = QueueBounds()
_Made = TypeVar("_Made")


class RoutingTable(Struct, frozen=True):
    """How notifications are routed, and when a queue counts as congested."""

    algorithm: Algorithm = Algorithm.DNR
    congestion_threshold: float = CONGESTION_THRESHOLD
    window_ms: float = float(WINDOW_MS)


class QueueTable(Struct, frozen=True):
    """How long a link's queue may get, and what happens then."""

    capacity: int = _BOUNDS.capacity
    capacity_bytes: int = _BOUNDS.capacity_bytes
    high_water: int = _BOUNDS.high_water
    high_water_bytes: int = _BOUNDS.high_water_bytes
    policy: LinkPolicy = LinkPolicy.DROP_NEWEST


class ClientQueueTable(Struct, frozen=True):
    """How far a subscriber may be behind, and what happens then."""

    capacity: int = _BOUNDS.capacity
    capacity_bytes: int = _BOUNDS.capacity_bytes
    high_water: int = _BOUNDS.high_water
    high_water_bytes: int = _BOUNDS.high_water_bytes
    policy: ClientPolicy = ClientPolicy.PAUSE


class ShapeTable(Struct, frozen=True):
    """What one direction of a link is slowed down to; what is not said is as in [links]."""

    source: str
    target: str
    bandwidth_bytes_per_s: float | UnsetType = UNSET
    latency_ms: float | UnsetType = UNSET


class LinksTable(Struct, frozen=True):
    """What all links are slowed down to, and exceptions by direction."""

    bandwidth_bytes_per_s: float | UnsetType = UNSET
    latency_ms: float = 0.0
    shape: tuple[ShapeTable, ...] = ()


class BrokerTable(Struct, frozen=True):
    """Where a broker listens; port 0 stands for any that is free."""

    host: str = Address().host
    port: int = 0


class LimitsTable(Struct, frozen=True):
    """Times and sizes that protect a broker from whoever connects."""

    frame_max: int = Limits().frame_max
    publish_window: int = Limits().publish_window
    hello_s: float = Limits().hello_s
    keepalive_s: float = Limits().keepalive_s
    silence_s: float = Limits().silence_s
    stall_s: float = Limits().stall_s
    sync_s: float = Limits().sync_s
    drain_s: float = Limits().drain_s
    notice_renewal_s: float = Limits().notice_renewal_s
    redial_s_max: float = Limits().redial_s_max


class OverlayDocument(TopologyDocument, frozen=True, kw_only=True):
    """The tables of an overlay's document."""

    insecure: bool = False
    routing: RoutingTable = RoutingTable()
    queues: QueueTable = QueueTable()
    client_queues: ClientQueueTable = ClientQueueTable()
    links: LinksTable = LinksTable()
    limits: LimitsTable = LimitsTable()
    brokers: dict[str, BrokerTable] = field(default_factory=dict)


@dataclass(frozen=True)
class NamedOverlay:
    """An overlay as it is to run, and what its topology is called."""

    topology: NamedTopology
    configuration: OverlayConfiguration


def parse_overlay(text: str, where: str) -> NamedOverlay:
    """Return the overlay that TOML `text` describes; `where` names the file in errors."""
    return overlay_of(read(text, where), where)


def overlay_of(tables: Mapping[str, Any], where: str) -> NamedOverlay:
    """Return the overlay that the tables of a document describe.

    Raises InvalidConfiguration, or the topology's own error, where they make no sense.
    """
    document = convert(tables, OverlayDocument, where)
    topology = topology_of(document, where)
    scot, routing = topology.scot, document.routing
    if not routing.congestion_threshold > 0:
        raise InvalidConfiguration(f"{where}: routing.congestion_threshold must be above 0")
    if not 1 <= routing.window_ms < 1e6:
        raise InvalidConfiguration(f"{where}: routing.window_ms must be 1 or more and below 1e6")
    _check_limits(document.limits, where)
    configuration = OverlayConfiguration(
        scot=scot,
        **structs.asdict(routing),
        queues=_bounds(document.queues, f"{where}: queues"),
        link_policy=document.queues.policy,
        client_queues=_bounds(document.client_queues, f"{where}: client_queues"),
        client_policy=document.client_queues.policy,
        shapes=_shapes(document.links, scot, where),
        addresses=_addresses(document.brokers, scot, where),
        limits=Limits(**structs.asdict(document.limits)),
        insecure=document.insecure,
    )
    for broker in scot.brokers:
        _said_where(f"{where}: brokers", configuration.address, broker)
    return NamedOverlay(topology, configuration)


def _check_limits(limits: LimitsTable, where: str) -> None:
    for name, value in structs.asdict(limits).items():
        if not 0 < value < 1e12:
            raise InvalidConfiguration(f"{where}: limits.{name} must be above 0, not {value}")


def _bounds(table: QueueTable | ClientQueueTable, where: str) -> QueueBounds:
    values = structs.asdict(table)
    del values["policy"]
    return _said_where(where, lambda: QueueBounds(**values))


def _shapes(links: LinksTable, scot: SCOT, where: str) -> dict[tuple[BrokerId, BrokerId], Shape]:
    everywhere = _shape(links.bandwidth_bytes_per_s, links.latency_ms, f"{where}: links")
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
        bandwidth, latency_ms = table.bandwidth_bytes_per_s, table.latency_ms
        shapes[ends[0], ends[1]] = _shape(
            links.bandwidth_bytes_per_s if bandwidth is UNSET else bandwidth,
            links.latency_ms if latency_ms is UNSET else latency_ms,
            place,
        )
    return shapes


def _shape(bandwidth: float | UnsetType, latency_ms: float, where: str) -> Shape:
    return _said_where(where, Shape, None if bandwidth is UNSET else bandwidth, latency_ms)


def _addresses(
    brokers: Mapping[str, BrokerTable], scot: SCOT, where: str
) -> dict[BrokerId, Address]:
    addresses: dict[BrokerId, Address] = {}
    for name, table in brokers.items():
        place = f'{where}: brokers."{name}"'
        broker = _said_where(place, scot.broker, name)
        if broker in addresses:
            raise InvalidConfiguration(f"{place}: {broker} is there twice; remove one")
        if not 0 <= table.port <= PORT_MAX:
            raise InvalidConfiguration(
                f"{place}.port must be between 0 and {PORT_MAX}, not {table.port}"
            )
        addresses[broker] = Address(table.host, table.port)
    return addresses


def _said_where(where: str, make: Callable[..., _Made], *facts: object) -> _Made:
    """Return what `make` makes; where it refuses, the error says the place in the document."""
    try:
        return make(*facts)
    except OctopisError as failure:
        raise InvalidConfiguration(f"{where}: {failure}") from failure


def format_overlay(overlay: NamedOverlay) -> str:
    """Return TOML text that `parse_overlay` reads back as the same overlay."""
    configuration = overlay.configuration
    parts = [
        f"insecure = {_toml_value(configuration.insecure)}  "
        "# true: brokers may listen where other machines reach them\n",
        format_topology(overlay.topology),
        _table(
            "routing",
            {
                "algorithm": configuration.algorithm,
                "congestion_threshold": float(configuration.congestion_threshold),
                "window_ms": float(configuration.window_ms),
            },
        ),
        _queues("queues", configuration.queues, configuration.link_policy),
        _queues("client_queues", configuration.client_queues, configuration.client_policy),
        _table("limits", asdict(configuration.limits)),
    ]
    for (source, target), shape in configuration.shapes.items():
        values: dict[str, object] = {"source": source.short, "target": target.short}
        if shape.bandwidth is not None:
            values["bandwidth_bytes_per_s"] = float(shape.bandwidth)
        values["latency_ms"] = float(shape.latency_ms)
        parts.append(_table("[links.shape]", values))
    for broker in configuration.scot.brokers:
        address = configuration.address(broker)
        parts.append(_table(f"brokers.{encode_text(broker.short)}", address._asdict()))
    return "\n".join(parts)


def _queues(name: str, bounds: QueueBounds, policy: Enum) -> str:
    return _table(name, {**asdict(bounds), "policy": policy})


def _table(name: str, values: dict[str, object]) -> str:
    lines = [f"[{name}]", *(f"{key} = {_toml_value(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _toml_value(value: object) -> str:
    if isinstance(value, Enum):
        return encode_text(str(value.value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return encode_text(value)
    return repr(value)


_TABLES: dict[str, type[msgspec.Struct]] = {
    "routing": RoutingTable,
    "queues": QueueTable,
    "client_queues": ClientQueueTable,
    "links": LinksTable,
    "limits": LimitsTable,
}
_PREFIX = "OCTOPIS_"

Flags = Mapping[tuple[str, str], Any]
"""Values by table and key; None where the flag was not given."""


def variables() -> dict[str, tuple[str, str]]:
    """Return the table and the key that each variable of the environment stands for."""
    known = {
        f"{_PREFIX}{table}_{field.name}".upper(): (table, field.name)
        for table, struct in _TABLES.items()
        for field in msgspec.structs.fields(struct)
        if field.name != "shape"
    }
    return {**known, f"{_PREFIX}INSECURE": ("", "insecure")}


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


def _from_environment(environment: Mapping[str, str]) -> dict[tuple[str, str], Any]:
    known = variables()
    tables = tuple(f"{_PREFIX}{table.upper()}_" for table in _TABLES)
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
