"""The overlay: factors, their product, the paper's overlays, planning."""

from octopis.core.topology.catalogue import NamedTopology, catalogue_names, from_catalogue
from octopis.core.topology.document import format_topology, parse_topology
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.planner import OverlayPlan, grow, plan
from octopis.core.topology.scot import SCOT, Link, LinkKind

__all__ = [
    "SCOT",
    "AcyclicFactor",
    "ConnectivityFactor",
    "Link",
    "LinkKind",
    "NamedTopology",
    "OverlayPlan",
    "catalogue_names",
    "format_topology",
    "from_catalogue",
    "grow",
    "parse_topology",
    "plan",
]
