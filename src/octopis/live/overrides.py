"""What comes after the file: the environment, then flags.

`OCTOPIS_ROUTING_ALGORITHM=snr` stands for `algorithm` under `[routing]`, and so for every key of
[routing], [queues], [client_queues], [links] and [limits]; `OCTOPIS_INSECURE` for `insecure`.
"""

import tomllib
from collections.abc import Mapping
from typing import Any

import msgspec

from octopis.errors import InvalidConfiguration
from octopis.live.document import (
    ClientQueueTable,
    LimitsTable,
    LinksTable,
    NamedOverlay,
    QueueTable,
    RoutingTable,
    overlay_of,
)
from octopis.model.suggestion import did_you_mean
from octopis.topology.toml_text import read

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
