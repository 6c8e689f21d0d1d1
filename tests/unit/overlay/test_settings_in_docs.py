"""The table of settings in docs/live.md, and what it promises, come from the settings' structs."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
import pytest
from msgspec import NODEFAULT, Struct

from octopis.core.toml import bounds, encode_value, metas
from octopis.core.topology.document import TopologyDocument
from octopis.errors import InvalidConfiguration
from octopis.overlay.settings import OverlayDocument, overlay_of

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
            yield from (each for each in own if each.place.split(".")[-1] not in _names(struct))
        elif isinstance(inner, type(Struct)):
            name = field.name if inner is field.type else f'{field.name}."b,2"'
            yield from settings_of(inner, f"{place}{name}.", default)
        else:
            yield Setting(f"{place}{field.name}", default, field.type)


def _names(struct: type[Struct]) -> tuple[str, ...]:
    return struct.__struct_fields__


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
