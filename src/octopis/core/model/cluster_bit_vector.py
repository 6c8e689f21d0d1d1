"""The cluster bit vector (CBV): which clusters, one bit each."""

from collections.abc import Iterable, Iterator


class ClusterBitVector(int):
    """A set of clusters as one integer: bit i is cluster i, written right to left.

    An int underneath, so that it is immutable, hashable, cheap to copy and to send, and any
    number of clusters fits. `cbv_s` names the host cluster of a subscription, `cbv_p` the
    clusters that a notification still has to reach.
    """

    __slots__ = ()

    @classmethod
    def of(cls, clusters: Iterable[int]) -> "ClusterBitVector":
        """Return the vector with the bits of `clusters` set."""
        bits = 0
        for cluster in clusters:
            assert cluster >= 0, f"cluster indexes start at 0, not {cluster}"
            bits |= 1 << cluster
        return cls(bits)

    def __contains__(self, cluster: int) -> bool:
        return bool(self >> cluster & 1)

    def __iter__(self) -> Iterator[int]:
        """Yield the clusters in the set, lowest first."""
        rest = int(self)
        while rest:
            lowest = rest & -rest
            yield lowest.bit_length() - 1
            rest ^= lowest

    def __len__(self) -> int:
        return self.bit_count()

    def bits(self, clusters: int) -> str:
        """Return the vector as the paper writes it: one digit per cluster, cluster 0 rightmost."""
        return f"{int(self):0{clusters}b}"

    def __repr__(self) -> str:
        return f"ClusterBitVector({int(self):#b})"

    __str__ = __repr__
