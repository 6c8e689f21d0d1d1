import pytest

from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.demo.fault.cast import FULL, SMALL, Cast, attributes, cast_of, question_of
from octopis.explain.explainer import explain


@pytest.mark.parametrize(
    "topology", [FULL.topology, SMALL.topology, from_catalogue("paper")], ids=lambda each: each.name
)
def test_victim_is_an_inner_broker_that_hosts_nobody_with_subscribers_behind_it_and_elsewhere(
    topology,
):
    cast = cast_of(topology)
    assert cast.scot.is_inner(cast.victim)
    assert cast.victim not in (cast.host, *cast.subscribers)
    assert cast.host not in cast.subscribers
    assert len(set(cast.subscribers)) == len(cast.subscribers)
    assert cast.behind
    assert cast.behind < set(cast.subscribers)
    assert len({each.cluster for each in cast.subscribers}) > 1


def test_figure_3_has_two_behind_and_two_elsewhere(cast: Cast):
    assert (cast.host.short, cast.victim.short) == ("d,0", "b,0")
    assert [each.short for each in cast.subscribers] == ["a,0", "c,1", "f,2", "d,1"]
    assert {each.short for each in cast.behind} == {"a,0", "c,1"}
    assert cast.names_behind() == "B(a, 0) and B(c, 1)"


def test_routing_core_reaches_all_around_the_victim_where_snr_does_not(cast: Cast):
    question = question_of(cast.scot, cast.host, cast.subscribers, cast.victim)
    assert explain(question, Algorithm.TNR).lost == []
    assert [each.short for each in cast.cut_off_by_snr] == ["a,0"]
    assert set(cast.cut_off_by_snr) <= cast.behind


def test_every_publication_is_wanted(cast: Cast):
    question = question_of(cast.scot, cast.host, cast.subscribers)
    for number in (0, 77):
        assert all(each.filter.matches(attributes(number)) for each in question.subscribers)


def test_there_is_time_for_it():
    for plan in (FULL, SMALL):
        assert 0 < plan.kill_s < plan.least_s <= 6
        assert plan.per_s >= 100
