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


def test_written_bits_read_back():
    assert ClusterBitVector.parse("101") == ClusterBitVector.of([0, 2])


@pytest.mark.parametrize("text", ["", "102", "0b1"])
def test_what_is_no_bit_vector_is_a_fault_of_the_program(text: str):
    with pytest.raises(AssertionError):
        ClusterBitVector.parse(text)


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
    assert ClusterBitVector.parse(vector.bits(201)) == vector


@given(CLUSTERS, st.integers(min_value=0, max_value=200))
def test_change_gives_a_new_vector(clusters: set[int], cluster: int):
    vector = ClusterBitVector.of(clusters)
    assert set(vector.with_cluster(cluster)) == clusters | {cluster}
    assert set(vector.without_cluster(cluster)) == clusters - {cluster}
    assert set(vector) == clusters


def test_changed_vectors_are_vectors():
    vector = ClusterBitVector.of([1])
    assert type(vector.with_cluster(2)) is ClusterBitVector
    assert type(vector.without_cluster(1)) is ClusterBitVector


def test_cannot_be_changed():
    with pytest.raises(AttributeError):
        ClusterBitVector.of([1]).extra = 1  # type: ignore[attr-defined]


def test_repr_makes_the_vector_again():
    vector = ClusterBitVector.of([0, 2])
    assert repr(vector) == str(vector) == "ClusterBitVector.parse('101')"


def test_pickles():
    vector = ClusterBitVector.of([0, 77])
    assert pickle.loads(pickle.dumps(vector)) == vector  # noqa: S301 - our own bytes
