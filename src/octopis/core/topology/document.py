"""A topology as a TOML document.

    [topology]
    name = "line"
    description = "optional"

    [acyclic_factor]
    edges = [["a", "b"], ["b", "c"]]
    vertices = ["a", "b", "c"]        # optional: sets their order; needed for a single vertex

    [connectivity_factor]
    clusters = 2                      # or in full: vertices = [0, 1] and edges = [[0, 1]]

Instead of the factors, `catalogue = "figure-3"` may stand under [topology].
"""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from octopis.core.toml import decode, encode_table
from octopis.core.topology.catalogue import NamedTopology, from_catalogue
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.scot import SCOT
from octopis.errors import InvalidConfiguration


class _Heading(Struct, frozen=True):
    name: str | UnsetType = UNSET
    description: str = ""
    catalogue: str | UnsetType = UNSET


class _Acyclic(Struct, frozen=True):
    edges: list[tuple[str, str]] | UnsetType = UNSET
    vertices: list[str] | UnsetType = UNSET


class _Connectivity(Struct, frozen=True):
    # Indexes may be anything here: the factor itself refuses what is no index, and says why.
    clusters: int | UnsetType = UNSET
    vertices: list[Any] | UnsetType = UNSET
    edges: list[tuple[Any, Any]] | UnsetType = UNSET


class TopologyDocument(Struct, frozen=True, kw_only=True):
    """The tables of a document that describe an overlay; other documents may have more."""

    topology: _Heading
    # Absent factors are empty ones, so that unknown keys are looked for in them.
    acyclic_factor: _Acyclic = _Acyclic()
    connectivity_factor: _Connectivity = _Connectivity()


def parse_topology(text: str, where: str) -> NamedTopology:
    """Return the topology that TOML `text` describes; `where` names the file in errors.

    Raises InvalidConfiguration where the document makes no sense, and the error of the
    property where its factors make no overlay.
    """
    return topology_of(decode(text, TopologyDocument, where), where)


def topology_of(document: TopologyDocument, where: str) -> NamedTopology:
    """Return the topology that a decoded document describes, as `parse_topology` does."""
    if document.topology.catalogue is not UNSET:
        return _from_catalogue(document, document.topology.catalogue, where)
    if not document.topology.name:
        raise InvalidConfiguration(f"{where}: topology.name is missing or empty")
    scot = SCOT(_acyclic(document.acyclic_factor, where), _connectivity(document, where))
    return NamedTopology(document.topology.name, document.topology.description, scot)


def format_topology(topology: NamedTopology) -> str:
    """Return TOML text that `parse_topology` reads back as the same topology."""
    acyclic, connectivity = topology.scot.acyclic, topology.scot.connectivity
    heading = {"name": topology.name, "description": topology.description or None}
    factor = {"vertices": acyclic.vertices, "edges": acyclic.edges}
    tables = [
        encode_table("topology", heading),
        encode_table("acyclic_factor", factor),
        encode_table("connectivity_factor", {"clusters": connectivity.order}),
    ]
    return "\n".join(tables)


def _from_catalogue(document: TopologyDocument, catalogue: str, where: str) -> NamedTopology:
    for name in ("acyclic_factor", "connectivity_factor"):
        if any(value is not UNSET for value in _values(getattr(document, name))):
            raise InvalidConfiguration(
                f"{where}: topology.catalogue and [{name}] exclude each other; remove one"
            )
    try:
        known = from_catalogue(catalogue)
    except InvalidConfiguration as failure:
        raise InvalidConfiguration(f"{where}: topology.catalogue: {failure}") from failure
    heading = document.topology
    name = heading.name or known.name
    return NamedTopology(name, heading.description or known.description, known.scot)


def _acyclic(factor: _Acyclic, where: str) -> AcyclicFactor:
    if factor.vertices is not UNSET:
        return AcyclicFactor(factor.vertices, factor.edges or ())
    if factor.edges is UNSET:
        raise InvalidConfiguration(f"{where}: acyclic_factor.edges is missing")
    return AcyclicFactor.from_edges(factor.edges)


def _connectivity(document: TopologyDocument, where: str) -> ConnectivityFactor:
    factor = document.connectivity_factor
    if factor.clusters is not UNSET:
        if factor.vertices is not UNSET or factor.edges is not UNSET:
            raise InvalidConfiguration(
                f"{where}: connectivity_factor.clusters and its vertices or edges exclude "
                f"each other; remove one"
            )
        return ConnectivityFactor.complete(factor.clusters)
    if factor.vertices is UNSET:
        raise InvalidConfiguration(
            f"{where}: connectivity_factor.clusters is missing (or its vertices and edges)"
        )
    return ConnectivityFactor.from_edges(factor.vertices, factor.edges or ())


def _values(factor: Struct) -> tuple[object, ...]:
    return tuple(getattr(factor, name) for name in factor.__struct_fields__)
