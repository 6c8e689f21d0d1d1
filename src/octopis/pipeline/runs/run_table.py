"""The table of runs that a sweep works through, as TOML.

level = "deliveries"            # how much each run writes down
[[runs]]
algorithm = ["bid", "snr", "dnr"]
subscribers = [500, 1000]       # a list stands for one run with each
per_minute = 60
seed = [1, 2, 3]

[[runs]]
scenario = "burst"              # a folder, instead of a size; relative to this file
algorithm = "dnr"
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import GenericAlias
from typing import Any

import msgspec

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.toml import decode
from octopis.core.topology import NamedTopology
from octopis.errors import InvalidConfiguration
from octopis.files import check_local
from octopis.scenario.costs import Profile
from octopis.scenario.plan import PLAN_NUMBERS, ScenarioPlan, plan_from
from octopis.trace import Level


def _one_or_several(kind: Any) -> Any:
    return kind | GenericAlias(tuple, (kind, ...))


_Row: Any = msgspec.defstruct(
    "_Row",
    [
        ("algorithm", _one_or_several(Algorithm)),
        *((key, _one_or_several(str) | None, None) for key in ("scenario", "topology", "profile")),
        *((each.key, _one_or_several(each.kind) | None, None) for each in PLAN_NUMBERS),
    ],
    frozen=True,
    kw_only=True,
)
_Document: Any = msgspec.defstruct(
    "_Document", [("runs", tuple[_Row, ...]), ("level", Level, Level.DELIVERIES)], frozen=True
)

_DEFAULTS: dict[str, Any] = {
    "topology": "figure-3",
    "profile": "paper",
    **{each.key: each.default for each in PLAN_NUMBERS},
}


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation: a scenario that is there or is made from a plan, and an algorithm."""

    name: str
    algorithm: Algorithm
    scenario: Path | None
    plan: ScenarioPlan | None


@dataclass(frozen=True, slots=True)
class RunTable:
    """All runs, and how much each writes down."""

    runs: tuple[Run, ...]
    level: Level


@dataclass(frozen=True, slots=True)
class Loaders:
    """How a topology and a profile are found by the names that a user gives."""

    topology: Callable[[str], NamedTopology]
    profile: Callable[[str], Profile]


def parse_runs(text: str, where: Path, loaders: Loaders) -> RunTable:
    """Return the runs that TOML `text` asks for, or raise InvalidConfiguration."""
    document = decode(text, _Document, str(where))
    found: dict[str, Run] = {}
    for number, row in enumerate(document.runs):
        place = f"{where}: runs[{number}]"
        for run in _runs(row, where.parent, place, loaders):
            if run.name in found:
                raise InvalidConfiguration(f"{place}: the run {run.name} was there before")
            found[run.name] = run
    if not found:
        raise InvalidConfiguration(f"{where} asks for no run: add a [[runs]] table")
    return RunTable(tuple(found.values()), document.level)


def _runs(row: Any, base: Path, place: str, loaders: Loaders) -> list[Run]:
    given = {name: getattr(row, name) for name in _DEFAULTS if getattr(row, name) is not None}
    if row.scenario is not None:
        if given:
            raise InvalidConfiguration(
                f"{place}: a scenario has its {next(iter(given))}: leave it out, or the scenario"
            )
        for name in _listed(row.scenario):
            check_local(Path(name))
        # Absolute, since it is a worker who reads them, and it runs somewhere else.
        folders = [(base / name).absolute() for name in _listed(row.scenario)]
        return [
            Run(f"{folder.name}-{algorithm.value}", algorithm, folder, None)
            for folder, algorithm in product(folders, _listed(row.algorithm))
        ]
    values = {**_DEFAULTS, **given}
    runs = []
    for choice in product(*(_listed(value) for value in values.values())):
        facts = dict(zip(values, choice, strict=True))
        for algorithm in _listed(row.algorithm):
            plan = _plan(facts, algorithm, loaders)
            runs.append(Run(f"{plan.name}-{algorithm.value}", algorithm, None, plan))
    return runs


def _plan(facts: dict[str, Any], algorithm: Algorithm, loaders: Loaders) -> ScenarioPlan:
    return plan_from(
        {each.key: facts[each.key] for each in PLAN_NUMBERS},
        routing=RoutingOptions(algorithm),
        name=_name(facts),
        topology=loaders.topology(facts["topology"]),
        profile=loaders.profile(facts["profile"]),
    )


_ALWAYS = {
    "subscribers": "{}s",
    "publishers": "{}p",
    "notifications": "{}n",
    "per_minute": "{:g}pm",
}
_BURST = ("high_rate", "high_rate_per_minute", "high_rate_publishers")
_WHERE_UNUSUAL = {"subscribe_every_ms": "every{:g}ms", "selectivity": "{:g}"}
"""How numbers stand in names; of others that are unusual, key and value do."""


def _name(facts: dict[str, Any]) -> str:
    """Return a name that says everything by which two scenarios of a sweep can differ."""
    parts = [Path(facts["topology"]).stem]
    if facts["profile"] != _DEFAULTS["profile"]:
        parts.append(Path(facts["profile"]).stem)
    parts += [form.format(facts[key]) for key, form in _ALWAYS.items()]
    if facts["high_rate"]:
        count = facts["high_rate_publishers"]
        each = f"{facts['high_rate']}at{facts['high_rate_per_minute']:g}pm"
        parts.append(f"{count if count > 1 else ''}hrp{each}")
    for number in PLAN_NUMBERS:
        key, value = number.key, facts[number.key]
        if value != number.default and key not in {*_ALWAYS, *_BURST, "seed"}:
            parts.append(_WHERE_UNUSUAL.get(key, key + "{:g}").format(value))
    return "-".join([*parts, f"seed{facts['seed']}"])


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]
