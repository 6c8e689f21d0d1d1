"""Figure 4: cluster bit vectors, shown with 8 bits, and section 4.4 on where they are used."""

import pytest

from octopis.core.model import BrokerId, ClusterBitVector, Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.explain.explainer import explain
from octopis.explain.question import Question
from support.network import Network
from support.notation import broker, links, subscriber

SCOT_3 = from_catalogue("figure-3").scot


class TestVectors:
    def test_a_cbv_s_of_a_subscriber_in_cluster_2(self):
        cbv_s = ClusterBitVector.of([2])
        assert cbv_s.bits(3) == "100"
        assert cbv_s.bits(8) == "00000100"

    def test_b_cbv_p_of_a_notification_for_clusters_0_and_2(self):
        cbv_p = ClusterBitVector.of([0, 2])
        assert cbv_p.bits(3) == "101"
        assert cbv_p.bits(8) == "00000101"

    def test_three_bits_name_every_set_of_clusters_of_figure_3(self):
        vectors = {ClusterBitVector(bits).bits(len(SCOT_3.clusters)) for bits in range(2**3)}
        assert all(len(bits) == 3 for bits in vectors)
        assert len(vectors) == 8


class TestUse:
    @pytest.mark.parametrize("host", SCOT_3.cluster(2), ids=str)
    def test_host_broker_in_cluster_2_sets_bit_2_and_all_tables_hold_it(self, host: BrokerId):
        network = Network(SCOT_3, Algorithm.DNR)
        network.subscribe(host, "S", "S", "TRUE")
        network.settle()
        entries = [each.table.get("S") for each in network.brokers.values()]
        assert {entry.cbv_s.bits(8) for entry in entries} == {"00000100"}

    def test_notification_carries_bits_0_and_2_when_both_target_clusters_are_left_out(self):
        question = Question(
            SCOT_3,
            broker("b,1"),
            Notification({}),
            (subscriber("S1", "a,0"), subscriber("S2", "a,2"), subscriber("S3", "a,1")),
            frozenset(links("b,1>b,0 b,1>b,2")),
        )
        carried = [hop.cbv_p.bits(8) for hop in explain(question, Algorithm.DNR).hops if hop.cbv_p]
        assert carried == ["00000101"]
