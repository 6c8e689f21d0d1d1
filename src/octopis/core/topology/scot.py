"""The SCOT: the Cartesian product of a tree of regions and a complete graph of clusters.

Its vertices are the brokers, and its edges the links between them, which are of two kinds: an edge
of the tree gives an aCOL in every cluster, an edge of the complete graph an iCOL in every region.
"""

from enum import Enum
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

from octopis.core.model import BrokerId
from octopis.core.model.suggestion import did_you_mean
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.errors import InvalidTopology, LabelOrderError, UnknownVertex


class LinkKind(Enum):
    """What a link joins: brokers of one cluster (aCOL) or of one region (iCOL)."""

    ACOL = "aCOL"
    ICOL = "iCOL"


class Link(NamedTuple):
    """A link from one broker to another.

    Lists of links name each link once, with the broker first that comes first in the overlay.
    """

    source: BrokerId
    target: BrokerId
    kind: LinkKind

    def __str__(self) -> str:
        return f"{self.kind.value} {self.source} - {self.target}"


# A slip in a file should end in a sentence, not in a machine without memory.
BROKERS_MAX = 100_000
LINKS_MAX = 5_000_000


class SCOT:
    """A structured cyclic overlay topology. It never changes once it is made.

    What routing asks for all the time is looked up in dictionaries that are filled here.
    Methods that take a broker expect one of this overlay: `broker` checks what users write.
    """

    def __init__(self, acyclic: AcyclicFactor, connectivity: ConnectivityFactor) -> None:
        _check_label_order(acyclic, connectivity)
        _check_size(acyclic, connectivity)
        self.acyclic: Final = acyclic
        self.connectivity: Final = connectivity
        self.regions: Final = acyclic.vertices
        self.clusters: Final = tuple(connectivity.vertices)
        self._by_region: Final = {
            region: tuple(BrokerId(region, cluster) for cluster in self.clusters)
            for region in self.regions
        }
        self._by_cluster: Final = {
            cluster: tuple(self._by_region[region][cluster] for region in self.regions)
            for cluster in self.clusters
        }
        self.brokers: Final = tuple(chain.from_iterable(self._by_region.values()))
        self._places: Final = {broker: place for place, broker in enumerate(self.brokers)}
        self._primary: Final = {
            broker: tuple(
                self._by_region[region][broker.cluster]
                for region in acyclic.neighbours(broker.region)
            )
            for broker in self.brokers
        }
        self._secondary: Final = {
            broker: region[: broker.cluster] + region[broker.cluster + 1 :]
            for region in self._by_region.values()
            for broker in region
        }
        self._neighbours: Final = {
            broker: self._primary[broker] + self._secondary[broker] for broker in self.brokers
        }
        self._kinds: Final = {
            broker: dict.fromkeys(self._primary[broker], LinkKind.ACOL)
            | dict.fromkeys(self._secondary[broker], LinkKind.ICOL)
            for broker in self.brokers
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SCOT):
            return NotImplemented
        return (self.acyclic, self.connectivity) == (other.acyclic, other.connectivity)

    def __hash__(self) -> int:
        return hash((self.acyclic, self.connectivity))

    def __reduce__(self) -> tuple[type["SCOT"], tuple[AcyclicFactor, ConnectivityFactor]]:
        """Pickle the factors alone: they say everything."""
        return type(self), (self.acyclic, self.connectivity)

    def __repr__(self) -> str:
        return f"<SCOT of {len(self.regions)} regions x {len(self.clusters)} clusters>"

    def broker(self, text: str) -> BrokerId:
        """Return the broker of this overlay that is written as `b,2` or `B(b, 2)`.

        Raises LabelOrderError where that is no broker at all, UnknownVertex where this
        overlay has no such region or cluster.
        """
        broker = BrokerId.parse(text)
        where = f"the broker {text!r}"
        if broker.region not in self._by_region:
            few = f"; the regions are {', '.join(self.regions)}" if len(self.regions) <= 6 else ""
            hint = did_you_mean(broker.region, self.regions) or few
            raise UnknownVertex(broker.region, where, hint)
        if broker.cluster not in self._by_cluster:
            known = f"; the clusters are 0 to {len(self.clusters) - 1}"
            raise UnknownVertex(broker.cluster, where, known)
        return broker

    def bit(self, broker: BrokerId) -> int:
        """Return the bit that stands for a broker in sets of brokers: its place in `brokers`."""
        return 1 << self._places[broker]

    def brokers_in(self, bits: int) -> tuple[BrokerId, ...]:
        """Return the brokers of a set of bits, in the order of `brokers`."""
        return tuple(broker for place, broker in enumerate(self.brokers) if bits >> place & 1)

    def region(self, region: str) -> tuple[BrokerId, ...]:
        """Return the brokers of a region, in the order of their clusters."""
        return self._by_region[region]

    def cluster(self, cluster: int) -> tuple[BrokerId, ...]:
        """Return the brokers of a cluster, in the order of their regions."""
        return self._by_cluster[cluster]

    def primary_neighbours(self, broker: BrokerId) -> tuple[BrokerId, ...]:
        """Return the neighbours in the broker's own cluster."""
        return self._primary[broker]

    def secondary_neighbours(self, broker: BrokerId) -> tuple[BrokerId, ...]:
        """Return the neighbours in the broker's own region: one in every other cluster."""
        return self._secondary[broker]

    def neighbours(self, broker: BrokerId) -> tuple[BrokerId, ...]:
        """Return the primary and then the secondary neighbours."""
        return self._neighbours[broker]

    def link_kind(self, source: BrokerId, target: BrokerId) -> LinkKind:
        """Return the kind of the link between two neighbours.

        Raises InvalidTopology where no link joins them.
        """
        kind = self._kinds[source].get(target)
        if kind is None:
            raise InvalidTopology(f"no link joins {source} and {target}")
        return kind

    def is_edge(self, broker: BrokerId) -> bool:
        """Return whether the broker is an edge broker: at most one primary neighbour."""
        return len(self._primary[broker]) <= 1

    def is_inner(self, broker: BrokerId) -> bool:
        """Return whether the broker is an inner broker: two or more primary neighbours."""
        return not self.is_edge(broker)

    def distance(self, source: BrokerId, target: BrokerId) -> int:
        """Return the number of links of a shortest path between two brokers."""
        across = int(source.cluster != target.cluster)
        return self.acyclic.distance(source.region, target.region) + across

    @cached_property
    def region_masks(self) -> dict[str, int]:
        """The brokers of each region, as bits."""
        width = len(self.clusters)
        return {
            region: ((1 << width) - 1) << place * width for place, region in enumerate(self.regions)
        }

    @cached_property
    def cluster_masks(self) -> tuple[int, ...]:
        """The brokers of each cluster, as bits."""
        width = len(self.clusters)
        first = ((1 << len(self.brokers)) - 1) // ((1 << width) - 1)
        return tuple(first << cluster for cluster in self.clusters)

    @cached_property
    def branch_masks(self) -> dict[tuple[str, str], int]:
        """For each region and neighbouring region the brokers on the far side, as bits."""
        everybody = (1 << len(self.brokers)) - 1
        root = self.regions[0]
        order, parent = [root], {root: root}
        for region in order:
            for other in self.acyclic.neighbours(region):
                if other != parent[region]:
                    parent[other] = region
                    order.append(other)
        below = dict(self.region_masks)
        found: dict[tuple[str, str], int] = {}
        for region in reversed(order[1:]):
            below[parent[region]] |= below[region]
            found[parent[region], region] = below[region]
            found[region, parent[region]] = everybody & ~below[region]
        return found

    @property
    def diameter(self) -> int:
        """The diameter of the acyclic factor: the longest path within a cluster."""
        return self.acyclic.diameter

    @property
    def longest_path(self) -> int:
        """The longest of all shortest paths: one iCOL more where there are several clusters."""
        return self.diameter + (len(self.clusters) > 1)

    def acols_of_cluster(self, cluster: int) -> tuple[Link, ...]:
        """Return the links within a cluster."""
        return tuple(
            Link(self._by_region[first][cluster], self._by_region[second][cluster], LinkKind.ACOL)
            for first, second in self.acyclic.edges
        )

    def icols_of_region(self, region: str) -> tuple[Link, ...]:
        """Return the links within a region."""
        brokers = self._by_region[region]
        return tuple(
            Link(brokers[first], brokers[second], LinkKind.ICOL)
            for first, second in self.connectivity.edges
        )

    @cached_property
    def acols(self) -> tuple[Link, ...]:
        """All intra-cluster overlay links, cluster by cluster."""
        return tuple(chain.from_iterable(map(self.acols_of_cluster, self.clusters)))

    @cached_property
    def icols(self) -> tuple[Link, ...]:
        """All inter-cluster overlay links, region by region."""
        return tuple(chain.from_iterable(map(self.icols_of_region, self.regions)))


def _check_label_order(acyclic: object, connectivity: object) -> None:
    if not isinstance(acyclic, AcyclicFactor) or not isinstance(connectivity, ConnectivityFactor):
        given = f"{type(acyclic).__name__}, {type(connectivity).__name__}"
        raise LabelOrderError(
            given,
            "a SCOT is made of the acyclic factor and then the connectivity factor, "
            f"so that regions come first in B(region, cluster), not of ({given})",
        )


def _check_size(acyclic: AcyclicFactor, connectivity: ConnectivityFactor) -> None:
    regions, clusters = len(acyclic.vertices), connectivity.order
    brokers = regions * clusters
    links = len(acyclic.edges) * clusters + regions * connectivity.size
    if brokers > BROKERS_MAX or links > LINKS_MAX:
        raise InvalidTopology(
            f"an overlay of {brokers:,} brokers and {links:,} links is too large: "
            f"OctopiS builds at most {BROKERS_MAX:,} brokers and {LINKS_MAX:,} links"
        )
