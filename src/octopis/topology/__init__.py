"""The overlay: factors, their product, the paper's overlays, planning and drawing."""

from octopis.topology.catalogue import NamedTopology, catalogue_names, from_catalogue
from octopis.topology.document import format_topology, parse_topology
from octopis.topology.drawing import draw, draw_canvas
from octopis.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.topology.layout import Layout, lay_out
from octopis.topology.links import Link, LinkKind
from octopis.topology.planner import Plan, grow, plan
from octopis.topology.scot import SCOT

__all__ = [
    "SCOT",
    "AcyclicFactor",
    "ConnectivityFactor",
    "Layout",
    "Link",
    "LinkKind",
    "NamedTopology",
    "Plan",
    "catalogue_names",
    "draw",
    "draw_canvas",
    "format_topology",
    "from_catalogue",
    "grow",
    "lay_out",
    "parse_topology",
    "plan",
]
