from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
import pytest
from msgspec import NODEFAULT, Struct

from octopis.broker.settings import ClientPolicy, LinkPolicy, Shape
from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.toml import bounds, encode_value, metas
from octopis.core.topology import catalogue_names
from octopis.core.topology.document import TopologyDocument
from octopis.errors import InvalidConfiguration, OctopisError
from octopis.overlay.settings import (
    NamedOverlay,
    OverlayDocument,
    configured,
    format_overlay,
    overlay_of,
    parse_overlay,
    variables,
)

TOPOLOGY = '[topology]\ncatalogue = "figure-3"\n'
B0, B2 = BrokerId("b", 0), BrokerId("b", 2)


def test_topology_alone_is_enough():
    overlay = parse_overlay(TOPOLOGY, "overlay.toml")
    assert overlay.topology.name == "figure-3"
    assert len(overlay.configuration.scot.brokers) == 18
    assert overlay.configuration.routing.algorithm is Algorithm.TNR
    assert overlay.configuration.address(B2) == Address("127.0.0.1", 0)


def test_every_table_reaches_the_configuration():
    text = f"""
insecure = true
{TOPOLOGY}
[routing]
algorithm = "snr"
congestion_threshold = 20
window_ms = 10
[queues]
capacity = 1000
high_water = 100
policy = "drop_oldest"
[client_queues]
capacity = 50
high_water = 5
policy = "disconnect"
[links]
latency_ms = 2
[[links.shape]]
source = "b,2"
target = "b,0"
bandwidth_bytes_per_s = 20_000
[limits]
drain_s = 1
[brokers."b,2"]
host = "0.0.0.0"
port = 7402
"""
    found = parse_overlay(text, "overlay.toml").configuration
    assert found.routing == RoutingOptions(Algorithm.SNR, congestion_threshold=20, window_ms=10)
    assert (found.queues.capacity, found.queues.high_water) == (1000, 100)
    assert (found.client_queues.capacity, found.client_queues.high_water) == (50, 5)
    assert found.queues.policy is LinkPolicy.DROP_OLDEST
    assert found.client_queues.policy is ClientPolicy.DISCONNECT
    assert found.shapes[B2, B0] == Shape(20_000, 2)
    assert found.shapes[B0, B2] == Shape(None, 2)
    assert found.limits.drain_s == 1
    assert found.address(B2) == Address("0.0.0.0", 7402)  # noqa: S104 - as insecure allows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[routing]\nalgoritm = 'snr'", "unknown key 'routing.algoritm'; did you mean 'algorithm'"),
        ("[rooting]\n", "unknown key 'rooting'; did you mean 'routing'"),
        ('[brokers."b,2"]\nprot = 1', "'brokers.\"b,2\".prot'; did you mean 'port'"),
        ("[[links.shape]]\nsorce = 'b,2'", "'links.shape[0].sorce'; did you mean 'source'"),
        ("[routing]\nalgorithm = 'fast'", "routing.algorithm: invalid enum value 'fast'"),
        ("[routing]\nwindow_ms = 'long'", "routing.window_ms: expected 'float', got 'str'"),
        (
            "[routing]\nwindow_ms = 0",
            "routing.window_ms must be 0.001 or more and below 1e6, not 0",
        ),
        (
            "[routing]\ncongestion_threshold = 0",
            "routing.congestion_threshold must be above 0, not 0",
        ),
        ("[queues]\ncapacity = 5", "queues: a queue's high-water mark must be at least 1"),
        ("[limits]\ndrain_s = 0", "limits.drain_s must be above 0 and below 1e12, not 0"),
        ("[queues]\nhigh_water = 0", "queues.high_water must be 1 or more, not 0"),
        ("[links]\nlatency_ms = -1", "links.latency_ms must be 0 or more, not -1"),
        ("[links]\nbandwidth_bytes_per_s = 0", "links.bandwidth_bytes_per_s must be above 0"),
        ('[brokers."z,2"]\nport = 1', "brokers.\"z,2\": the broker 'z,2' names 'z'"),
        ('[brokers."b,2"]\nport = 65536', "port must be between 0 and 65535, not 65536"),
        ('[brokers."b,2"]\nhost = "0.0.0.0"', "say insecure = true"),
        ('[brokers."b,2"]\n[brokers."B(b, 2)"]', "B(b, 2) is there twice"),
        ("[[links.shape]]\nsource = 'b,2'\ntarget = 'c,1'", "links.shape[0]: "),
        (
            "[[links.shape]]\nsource = 'b,2'\ntarget = 'b,0'\nlatency_ms = nan",
            "links.shape[0].latency_ms must be 0 or more, not nan",
        ),
        ("[routing\n", "overlay.toml is not valid TOML"),
    ],
)
def test_what_makes_no_sense_is_said_with_its_place(text: str, said: str):
    with pytest.raises(InvalidConfiguration) as refused:
        parse_overlay(TOPOLOGY + text, "overlay.toml")
    assert said in str(refused.value)
    assert str(refused.value).startswith("overlay.toml")


def test_document_without_topology_is_refused():
    with pytest.raises(OctopisError, match="topology"):
        parse_overlay("[routing]\n", "overlay.toml")


SHAPED = """
insecure = true
[topology]
catalogue = "figure-3"
[routing]
algorithm = "bid"
[links]
latency_ms = 0.25
[[links.shape]]
source = "b,2"
target = "b,0"
bandwidth_bytes_per_s = 1e6
[brokers."a,1"]
host = "0.0.0.0"
port = 9
"""


def complete(overlay: NamedOverlay) -> NamedOverlay:
    """Return the same overlay with every address spelled out, as it is written."""
    configuration = overlay.configuration
    addresses = {broker: configuration.address(broker) for broker in configuration.scot.brokers}
    return NamedOverlay(overlay.topology, configuration.at(addresses))


@pytest.mark.parametrize(
    "text", [SHAPED, *(f"[topology]\ncatalogue = '{name}'" for name in catalogue_names())]
)
def test_what_is_written_is_read_back_as_the_same_overlay(text: str):
    overlay = parse_overlay(text, "before")
    written = format_overlay(overlay)
    again = parse_overlay(written, "after")
    assert again.configuration == complete(overlay).configuration
    assert again.topology.name == overlay.topology.name
    assert format_overlay(again) == written


def test_addresses_are_spelled_out():
    overlay = parse_overlay("[topology]\ncatalogue = 'figure-3'", "before")
    broker = overlay.configuration.scot.brokers[0]
    placed = NamedOverlay(overlay.topology, overlay.configuration.at({broker: Address(port=7400)}))
    assert '[brokers."a,0"]\nhost = "127.0.0.1"\nport = 7400\n' in format_overlay(placed)


TEXT = '[topology]\ncatalogue = "figure-3"\n[routing]\nalgorithm = "bid"\nwindow_ms = 20\n'


def test_environment_overrides_the_file_and_flags_override_both():
    environment = {"OCTOPIS_ROUTING_ALGORITHM": "snr", "OCTOPIS_ROUTING_WINDOW_MS": "30"}
    flags = {("routing", "window_ms"): 40, ("routing", "algorithm"): None}
    found = configured(TEXT, "overlay.toml", environment, flags).configuration
    assert (found.routing.algorithm, found.routing.window_ms) == (Algorithm.SNR, 40)


def test_without_either_the_file_holds():
    environment = {"OCTOPIS_STATE": "somewhere", "HOME": "/"}
    found = configured(TEXT, "overlay.toml", environment).configuration
    assert (found.routing.algorithm, found.routing.window_ms) == (Algorithm.BID, 20)


def test_tables_that_the_file_does_not_have_can_be_set():
    environment = {
        "OCTOPIS_LIMITS_DRAIN_S": "0.5",
        "OCTOPIS_CLIENT_QUEUES_POLICY": "drop_oldest",
        "OCTOPIS_LINKS_LATENCY_MS": "1",
        "OCTOPIS_INSECURE": "true",
    }
    found = configured(TEXT, "overlay.toml", environment).configuration
    assert found.limits.drain_s == 0.5
    assert found.client_queues.policy.value == "drop_oldest"
    assert found.insecure
    assert {shape.latency_ms for shape in found.shapes.values()} == {1.0}


def test_unknown_variable_is_an_error_with_a_suggestion():
    with pytest.raises(InvalidConfiguration, match="did you mean 'OCTOPIS_ROUTING_ALGORITHM'"):
        configured(TEXT, "overlay.toml", {"OCTOPIS_ROUTING_ALGORITM": "snr"})


def test_wrong_value_names_the_environment():
    with pytest.raises(InvalidConfiguration, match=r"the environment: routing\.algorithm"):
        configured(TEXT, "overlay.toml", {"OCTOPIS_ROUTING_ALGORITHM": "fast"})


def test_every_variable_stands_for_one_key():
    known = variables()
    assert len(set(known.values())) == len(known)
    assert known["OCTOPIS_QUEUES_CAPACITY"] == ("queues", "capacity")


# The table of settings in docs/live.md, and what it promises, come from the settings' structs.

DOCS = Path(__file__).parents[3] / "docs" / "live.md"
HEAD = "| setting | default | allowed | meaning |\n|---|---|---|---|\n"


class Setting(NamedTuple):
    place: str
    default: object
    kind: Any

    @property
    def row(self) -> str:
        described = [meta.description for meta in metas(self.kind) if meta.description]
        assert described, f"{self.place} has no description"
        default = {NODEFAULT: "needed", None: "none"}.get(self.default)
        if isinstance(self.default, int | float) and not isinstance(self.default, bool):
            default = f"{self.default:_}"
        default = default or f"`{encode_value(self.default)}`"
        return f"| `{self.place}` | {default} | {allowed(self.kind)} | {described[0]} |\n"


def allowed(kind: Any) -> str:
    plain = get_args(kind)[0] if get_args(kind) else kind
    if isinstance(plain, type) and issubclass(plain, Enum):
        return ", ".join(f"`{encode_value(each)}`" for each in plain)
    return bounds(kind)


def settings_of(struct: type[Struct], place: str, defaults: Any = None) -> Iterator[Setting]:
    """Yield every setting of a table; inner tables have only what they add to it."""
    fields = msgspec.structs.fields(struct)
    for field in fields:
        default = getattr(defaults, field.name, field.default)
        inner = get_args(field.type)[-1] if get_origin(field.type) is dict else field.type
        if get_origin(field.type) is tuple:
            own = settings_of(get_args(field.type)[0], f"{place}{field.name}[].")
            yield from (
                each for each in own if each.place.split(".")[-1] not in struct.__struct_fields__
            )
        elif isinstance(inner, type(Struct)):
            name = field.name if inner is field.type else f'{field.name}."b,2"'
            yield from settings_of(inner, f"{place}{name}.", default)
        else:
            yield Setting(f"{place}{field.name}", default, field.type)


SETTINGS = [
    each
    for each in settings_of(OverlayDocument, "")
    if each.place.split(".")[0] not in TopologyDocument.__struct_fields__
]


def test_table_in_the_docs_says_what_the_settings_say():
    table = HEAD + "".join(each.row for each in SETTINGS)
    assert table in DOCS.read_text(encoding="utf-8"), f"docs/live.md should have:\n\n{table}"


def tables_with(place: str, value: object) -> dict[str, Any]:
    """Return the tables of an overlay in which one setting has a value."""
    tables: dict[str, Any] = {"topology": {"catalogue": "figure-3"}}
    inside = tables
    *way, name = place.replace('."b,2"', "|b,2").split(".")
    for step in "|".join(way).split("|") if way else []:
        inside = inside.setdefault(step, {})
    inside[name] = value
    return tables


@pytest.mark.parametrize("setting", [each for each in SETTINGS if bounds(each.kind)])
def test_value_out_of_its_bounds_is_refused_with_place_value_and_bounds(setting: Setting):
    with pytest.raises(InvalidConfiguration) as refused:
        overlay_of(tables_with(setting.place, -1), "overlay.toml")
    must = f"{setting.place} must be {bounds(setting.kind)}, not -1"
    assert str(refused.value) == f"overlay.toml: {must}"
