from dataclasses import replace

from octopis.core.routing import Algorithm
from octopis.demo.texts import (
    IDEAS,
    TITLES,
    clients_sentence,
    overlay_sentence,
    slowed_sentence,
    tree_sentence,
)
from octopis.demo.workload import Feed, SlowedLink
from octopis.scenario.folder import Scenario


def test_every_algorithm_is_introduced():
    assert set(TITLES) == set(IDEAS) == set(Algorithm)


def test_numbers_are_those_of_the_scenario(scenario: Scenario, feed: Feed, link: SlowedLink):
    assert overlay_sentence(scenario).startswith("18 brokers run on this machine")
    assert "3 clusters, each a copy of one tree of 6 regions" in overlay_sentence(scenario)
    assert "20 subscribers ask for stock quotes of 3 publishers" in clients_sentence(scenario, 936)
    assert "330 notifications make 936 deliveries" in clients_sentence(scenario, 936)
    assert "at B(b, 2) sends 400 notifications a second" in slowed_sentence(link, feed)
    assert "iCOL to B(b, 0) is slowed down to 40%" in slowed_sentence(link, feed)


def test_it_is_said_whether_bid_can_avoid_the_link(link: SlowedLink):
    assert "every algorithm leads over the slowed link" in tree_sentence(link)
    assert "is 1 hop further on: BID's tree may" in tree_sentence(replace(link, hops_beyond=1))
    assert "is 2 hops further on" in tree_sentence(replace(link, hops_beyond=2))
