"""The overlays of the paper, by name."""

from dataclasses import dataclass
from functools import cache

from octopis.core.model.suggestion import did_you_mean
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.scot import SCOT
from octopis.errors import InvalidConfiguration


@dataclass(frozen=True)
class NamedTopology:
    """An overlay with the name and the sentence that people know it by."""

    name: str
    description: str
    scot: SCOT


@dataclass(frozen=True)
class _Entry:
    description: str
    vertices: str
    edges: str
    clusters: int


_ENTRIES = {
    "figure-3": _Entry(
        "The paper's Figure 3: an H-graph of 6 regions in 3 clusters.",
        vertices="a b c d e f",
        edges="a-b b-c d-e e-f b-e",
        clusters=3,
    ),
    "figure-7": _Entry(
        "The paper's Figure 7: a line of 3 regions in 3 clusters.",
        vertices="a b c",
        edges="a-b b-c",
        clusters=3,
    ),
    "paper": _Entry(
        "The paper's evaluation overlay S_e (Figure 8): 15 regions in 5 clusters.",
        vertices="i ii iii iv v vi vii viii ix x xi xii xiii xiv xv",
        edges=(
            "vi-vii vii-viii viii-ix ix-x "
            "i-vi xi-vi ii-vii xii-vii iii-viii xiii-viii iv-ix xiv-ix v-x xv-x"
        ),
        clusters=5,
    ),
}


def catalogue_names() -> tuple[str, ...]:
    """Return the names that `from_catalogue` knows."""
    return tuple(_ENTRIES)


@cache
def from_catalogue(name: str) -> NamedTopology:
    """Return the overlay called `name`, or raise InvalidConfiguration."""
    entry = _ENTRIES.get(name)
    if entry is None:
        hint = did_you_mean(name, _ENTRIES) or f"; there are {', '.join(_ENTRIES)}"
        raise InvalidConfiguration(f"the catalogue has no topology {name!r}{hint}")
    scot = SCOT(_tree(entry), ConnectivityFactor.complete(entry.clusters))
    return NamedTopology(name, entry.description, scot)


def _tree(entry: _Entry) -> AcyclicFactor:
    edges = [edge.split("-") for edge in entry.edges.split()]
    return AcyclicFactor(entry.vertices.split(), [(one, other) for one, other in edges])
