import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.core.model import ClusterBitVector

CLUSTERS = st.sets(st.integers(min_value=0, max_value=200))


def test_bits_are_written_right_to_left():
    assert ClusterBitVector.of([2]).bits(3) == "100"
    assert ClusterBitVector.of([0, 2]).bits(8) == "00000101"
    assert ClusterBitVector.of([]).bits(3) == "000"


def test_negative_cluster_is_a_fault_of_the_program():
    with pytest.raises(AssertionError, match="start at 0"):
        ClusterBitVector.of([-1])


@given(CLUSTERS)
def test_vector_is_the_set_of_its_clusters(clusters: set[int]):
    vector = ClusterBitVector.of(clusters)
    assert list(vector) == sorted(clusters)
    assert len(vector) == len(clusters)
    assert bool(vector) == bool(clusters)
    assert all((cluster in vector) == (cluster in clusters) for cluster in range(210))
    assert int(vector.bits(201), 2) == vector


def test_repr_makes_the_vector_again():
    vector = ClusterBitVector.of([0, 2])
    assert ClusterBitVector(0b101) == vector
    assert repr(vector) == str(vector) == "ClusterBitVector(0b101)"


def test_pickles():
    vector = ClusterBitVector.of([0, 77])
    assert pickle.loads(pickle.dumps(vector)) == vector  # noqa: S301 - our own bytes
