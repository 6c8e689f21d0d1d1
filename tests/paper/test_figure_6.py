"""Figure 6: static routing on the SCOT of Figure 3, every link that is used and no other."""

import pytest

from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.explain.explainer import explain
from octopis.explain.explanation import RouteExplanation
from octopis.explain.question import Question
from support.notation import broker, links, subscriber

SCOT_3 = from_catalogue("figure-3").scot

SUBSCRIBERS = (
    subscriber("S1", "a,0", "publisher IN ('P1', 'P2')"),
    subscriber("S2", "f,0", "publisher IN ('P1', 'P2')"),
    subscriber("S3", "f,1", "publisher IN ('P1', 'P3')"),
    subscriber("S4", "a,2", "publisher IN ('P1', 'P2')"),
)
HOSTS = {"P1": "f,2", "P2": "f,1", "P3": "a,1"}
IN_CLUSTER_0 = "f,0>e,0 e,0>b,0 b,0>a,0"
IN_CLUSTER_2 = "f,2>e,2 e,2>b,2 b,2>a,2"
ARROWS = {
    "P1": f"{IN_CLUSTER_2} f,2>f,1 f,2>f,0 {IN_CLUSTER_0}",
    "P2": f"f,1>f,0 f,1>f,2 {IN_CLUSTER_0} {IN_CLUSTER_2}",
    "P3": "a,1>b,1 b,1>e,1 e,1>f,1",
}
INTERESTED = {"P1": ["S1", "S2", "S3", "S4"], "P2": ["S1", "S2", "S4"], "P3": ["S3"]}
TARGET_CLUSTERS = {"P1": {0, 1, 2}, "P2": {0, 2}, "P3": {1}}

EACH = pytest.mark.parametrize("publisher", HOSTS)


def routed(publisher: str, algorithm: Algorithm = Algorithm.SNR) -> RouteExplanation:
    notification = Notification({"publisher": publisher})
    question = Question(SCOT_3, broker(HOSTS[publisher]), notification, SUBSCRIBERS)
    return explain(question, algorithm)


@EACH
@pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.DNR])
def test_every_link_and_no_other(publisher: str, algorithm: Algorithm):
    answer = routed(publisher, algorithm)
    assert {(hop.source, hop.target) for hop in answer.hops} == links(ARROWS[publisher])
    assert answer.ims == len(links(ARROWS[publisher]))


@EACH
def test_interested_subscribers_are_those_of_the_caption(publisher: str):
    assert list(routed(publisher).paths) == INTERESTED[publisher]


@EACH
def test_target_clusters_are_those_of_the_caption(publisher: str):
    ends = {path[-1].cluster for path in routed(publisher).paths.values()}
    assert ends == TARGET_CLUSTERS[publisher]


def test_one_copy_to_f_0_serves_both_s1_and_s2():
    into_cluster_0 = [hop for hop in routed("P1").hops if hop.target == broker("f,0")]
    assert len(into_cluster_0) == 1
    assert into_cluster_0[0].reached == ("S2",)


def test_host_of_p1_makes_two_more_copies_for_its_secondary_target_clusters():
    first = {hop.target for hop in routed("P1").hops if hop.after is None}
    assert first == {broker("e,2"), broker("f,1"), broker("f,0")}


def test_p2_has_no_primary_target_cluster_and_p3_no_secondary_one():
    assert all(hop.target.cluster != 1 for hop in routed("P2").hops)
    assert all(hop.target.cluster == 1 for hop in routed("P3").hops)


@EACH
def test_paths_keep_the_bounds_of_section_6(publisher: str):
    for path in routed(publisher).paths.values():
        across = path[0].cluster != path[-1].cluster
        assert len(path) - 1 <= SCOT_3.diameter + across
