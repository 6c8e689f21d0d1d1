"""What an overlay costs and bears, before anybody builds it."""

from dataclasses import dataclass

from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.core.topology.scot import BROKERS_MAX, SCOT
from octopis.errors import InvalidConfiguration


@dataclass(frozen=True)
class OverlayPlan:
    """The figures of an overlay; IMs are inter-broker messages per subscription."""

    brokers: int
    regions: int
    clusters: int
    edge_brokers: int
    inner_brokers: int
    acols: int
    icols: int
    diameter: int
    longest_path: int
    ims_two_step: int
    ims_flooding: int
    tolerated_deaths: int


def plan(scot: SCOT) -> OverlayPlan:
    """Return the figures of `scot`, all counted on the overlay itself."""
    edge_brokers = sum(map(scot.is_edge, scot.brokers))
    return OverlayPlan(
        brokers=len(scot.brokers),
        regions=len(scot.regions),
        clusters=len(scot.clusters),
        edge_brokers=edge_brokers,
        inner_brokers=len(scot.brokers) - edge_brokers,
        acols=len(scot.acols),
        icols=len(scot.icols),
        diameter=scot.diameter,
        longest_path=scot.longest_path,
        ims_two_step=_ims_two_step(scot),
        ims_flooding=_ims_flooding(scot),
        tolerated_deaths=_tolerated_deaths(scot),
    )


def grow(brokers_min: int, clusters: int, fanout: int = 3) -> SCOT:
    """Return the smallest overlay with at least `brokers_min` brokers in `clusters` clusters.

    Its tree is filled level by level, and no vertex has more than `fanout` children.
    Raises InvalidConfiguration where a number makes no sense.
    """
    for name, number in (("brokers", brokers_min), ("clusters", clusters), ("fanout", fanout)):
        if number < 1:
            raise InvalidConfiguration(f"{name} must be 1 or more, not {number}")
    if brokers_min > BROKERS_MAX:
        raise InvalidConfiguration(f"brokers must be {BROKERS_MAX:,} or fewer, not {brokers_min:,}")
    regions = -(-brokers_min // clusters)
    digits = max(3, len(str(regions)))
    labels = [f"r{number:0{digits}}" for number in range(1, regions + 1)]
    edges = [(labels[(child - 1) // fanout], labels[child]) for child in range(1, regions)]
    return SCOT(AcyclicFactor(labels, edges), ConnectivityFactor.complete(clusters))


def _ims_two_step(scot: SCOT) -> int:
    """Step one crosses each aCOL of the host cluster, step two each iCOL of its brokers."""
    host_cluster = scot.clusters[0]
    step_one = len(scot.acols_of_cluster(host_cluster))
    step_two = sum(len(scot.secondary_neighbours(broker)) for broker in scot.cluster(host_cluster))
    return step_one + step_two


def _ims_flooding(scot: SCOT) -> int:
    """Every broker sends to all neighbours but the one it heard from; the host heard from none."""
    sent_to_all = sum(len(scot.neighbours(broker)) for broker in scot.brokers)
    return sent_to_all - (len(scot.brokers) - 1)


def _tolerated_deaths(scot: SCOT) -> int:
    """Return the most deaths that leave the rest connected, whichever brokers die."""
    regions, clusters = len(scot.regions), len(scot.clusters)
    if regions == 1 or (regions == 2 and clusters == 1):
        # A complete graph: any that are left are neighbours, down to the last one.
        return len(scot.brokers) - 1
    if clusters == 1:
        return 0  # a tree falls apart at any inner broker
    # Spacapan's formula for the connectivity k of a Cartesian product of G and H, neither
    # of them a single vertex: min(k(G)|H|, k(H)|G|, least degree of G + least degree of H).
    tree_connectivity = 1
    cluster_connectivity = clusters - 1
    least_degree = min(len(scot.neighbours(broker)) for broker in scot.brokers)
    connectivity = min(tree_connectivity * clusters, cluster_connectivity * regions, least_degree)
    return connectivity - 1
