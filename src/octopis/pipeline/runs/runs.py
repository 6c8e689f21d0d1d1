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
from typing import Any

import msgspec

from octopis.core.routing import Algorithm
from octopis.core.toml import decode
from octopis.core.topology import NamedTopology
from octopis.errors import InvalidConfiguration
from octopis.scenario.costs import Profile
from octopis.scenario.document import RoutingOptions
from octopis.scenario.plan import ScenarioPlan
from octopis.trace import Level

_Whole = int | tuple[int, ...] | None
_Number = float | tuple[float, ...] | None
_Name = str | tuple[str, ...] | None


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    algorithm: Algorithm | tuple[Algorithm, ...]
    scenario: str | tuple[str, ...] | None = None
    topology: _Name = None
    profile: _Name = None
    subscribers: _Whole = None
    publishers: _Whole = None
    notifications: _Whole = None
    per_minute: _Number = None
    high_rate: _Whole = None
    high_rate_per_minute: _Number = None
    high_rate_publishers: _Whole = None
    subscribe_every_ms: _Number = None
    selectivity: _Number = None
    seed: _Whole = None


class _Document(msgspec.Struct, frozen=True):
    runs: tuple[_Row, ...]
    level: Level = Level.DELIVERIES


_DEFAULTS: dict[str, Any] = {
    "topology": "figure-3",
    "profile": "paper",
    "subscribers": 100,
    "publishers": 10,
    "notifications": 100,
    "per_minute": 60.0,
    "high_rate": 0,
    "high_rate_per_minute": 100_000.0,
    "high_rate_publishers": 1,
    "subscribe_every_ms": 10.0,
    "selectivity": 0.02,
    "seed": 1,
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


def _runs(row: _Row, base: Path, place: str, loaders: Loaders) -> list[Run]:
    given = {name: getattr(row, name) for name in _DEFAULTS if getattr(row, name) is not None}
    if row.scenario is not None:
        if given:
            raise InvalidConfiguration(
                f"{place}: a scenario has its {next(iter(given))}: leave it out, or the scenario"
            )
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
    plan = ScenarioPlan(
        routing=RoutingOptions(algorithm),
        name=_name(facts),
        topology=loaders.topology(facts["topology"]),
        profile=loaders.profile(facts["profile"]),
        subscribers=facts["subscribers"],
        publishers=facts["publishers"],
        notifications_each=facts["notifications"],
        per_minute=facts["per_minute"],
        high_rate_notifications=facts["high_rate"],
        high_rate_per_minute=facts["high_rate_per_minute"],
        high_rate_publishers=facts["high_rate_publishers"],
        subscribe_every_ms=facts["subscribe_every_ms"],
        selectivity=facts["selectivity"],
        seed=facts["seed"],
    )
    plan.check()
    return plan


def _name(facts: dict[str, Any]) -> str:
    """Return a name that says everything by which two scenarios of a sweep can differ."""
    parts = [Path(facts["topology"]).stem]
    if facts["profile"] != _DEFAULTS["profile"]:
        parts.append(Path(facts["profile"]).stem)
    parts += [f"{facts['subscribers']}s", f"{facts['publishers']}p", f"{facts['notifications']}n"]
    parts.append(f"{facts['per_minute']:g}pm")
    if facts["high_rate"]:
        count = facts["high_rate_publishers"]
        each = f"{facts['high_rate']}at{facts['high_rate_per_minute']:g}pm"
        parts.append(f"{count if count > 1 else ''}hrp{each}")
    if facts["subscribe_every_ms"] != _DEFAULTS["subscribe_every_ms"]:
        parts.append(f"every{facts['subscribe_every_ms']:g}ms")
    if facts["selectivity"] != _DEFAULTS["selectivity"]:
        parts.append(f"{facts['selectivity']:g}")
    return "-".join([*parts, f"seed{facts['seed']}"])


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]
