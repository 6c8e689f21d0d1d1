"""How subscriptions spread under target routing, by examples, mostly at B(b, 0)."""

import pytest

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Broker, Subscription
from octopis.core.routing.algorithms.spreading import LIFE_BITS, next_generation
from octopis.core.routing.messages import HeardVersions, HostChange, HostTable
from support.network import Network
from support.overlays import A0, A1, B0, B1, B2, C0, C1, CHAIN, ONE, enqueued

WANTED = parse_filter("x = 1")
FIRST = 1 << LIFE_BITS
"""The first generation of life 0."""


def change(sequence: int, host: BrokerId = C0, generation: int = FIRST, targets: int = 0):
    added = (Subscription(f"s{sequence}", WANTED),)
    return HostChange(host, generation, sequence - 1, sequence, added, (), targets)


def table(sequence: int, *ids: str, generation: int = FIRST, last: bool = True) -> HostTable:
    held = tuple(Subscription(each, WANTED) for each in ids)
    return HostTable(C0, generation, sequence, held, last)


def known(broker: Broker) -> list[str]:
    return sorted(entry.subscription.id for entry in broker.table)


def heard(sequence: int, host: BrokerId = C0, generation: int = FIRST) -> dict:
    return {host: (generation, sequence)}


@pytest.fixture
def broker() -> Broker:
    return Broker(B0, CHAIN, Algorithm.TNR)


# Changes of own clients


def test_change_goes_to_all_other_brokers_over_shortest_ways(broker: Broker):
    sent = enqueued(broker.client_subscribes("client", "s1", WANTED))
    targets = {link: messages[0].targets for link, messages in sent.items()}
    assert targets == {
        A0: sum(map(CHAIN.bit, CHAIN.region("a"))),
        C0: sum(map(CHAIN.bit, CHAIN.region("c"))),
        B1: CHAIN.bit(B1),
        B2: CHAIN.bit(B2),
    }
    assert sent[A0][0].after == 0
    assert sent[A0][0].sequence == 1
    assert enqueued(broker.client_unsubscribes("client", "s1"))[A0][0].removed == ("s1",)


def test_change_goes_around_a_dead_broker(broker: Broker):
    broker.link_down(A0)
    sent = enqueued(broker.client_subscribes("client", "s1", WANTED))
    assert set(sent) == {C0, B1, B2}
    assert sent[B1][0].targets == sum(map(CHAIN.bit, (*CHAIN.region("a"), B1)))
    assert sent[B1][0].tried


def test_lives_never_number_alike():
    assert next_generation(0, 7) != next_generation(0, 8)
    assert next_generation(next_generation(0, 7), 0) > next_generation(0, (1 << LIFE_BITS) - 1)


# Changes of others


def test_change_is_taken_in_once_and_passed_on_to_its_targets(broker: Broker):
    copy = change(1, targets=CHAIN.bit(B0) | CHAIN.bit(B1))
    sent = enqueued(broker.messages_arrived(C0, [copy]))
    assert known(broker) == ["s1"]
    assert {link: each[0].targets for link, each in sent.items()} == {B1: CHAIN.bit(B1)}
    broker.messages_arrived(B2, [change(1)])
    assert broker.counters.duplicates == 1


def test_change_after_a_gap_waits_for_the_missing_one(broker: Broker):
    broker.messages_arrived(C0, [change(1), change(3)])
    assert known(broker) == ["s1"]
    broker.messages_arrived(B1, [change(2)])
    assert known(broker) == ["s1", "s2", "s3"]


def test_sender_of_the_missing_change_is_told_of_those_that_came_early(broker: Broker):
    broker.messages_arrived(C0, [change(1), change(3)])
    sent = enqueued(broker.messages_arrived(B1, [change(2)]))
    assert sent[B1] == [HeardVersions(heard(3))]


def test_sender_that_knows_as_much_is_not_told(broker: Broker):
    broker.messages_arrived(C0, [change(1)])
    sent = enqueued(broker.messages_arrived(B1, [change(2)]))
    assert set(sent) == {A0, C0, B2}


def test_new_generation_takes_the_place_of_the_old_one(broker: Broker):
    broker.messages_arrived(C0, [change(1), change(2)])
    newer = next_generation(FIRST, 5)
    broker.messages_arrived(C0, [change(1, generation=newer)])
    assert known(broker) == ["s1"]
    broker.messages_arrived(C0, [change(3)])  # of the old one, late
    assert known(broker) == ["s1"]


def test_change_in_the_middle_of_an_unknown_generation_is_not_taken_in(broker: Broker):
    broker.messages_arrived(C0, [change(1), change(4, generation=next_generation(FIRST, 5))])
    assert known(broker) == ["s1"]


# Comparing


def test_neighbour_that_has_heard_less_gets_the_changes_in_between(broker: Broker):
    broker.messages_arrived(C0, [change(n) for n in (1, 2, 3)])
    sent = enqueued(broker.messages_arrived(B1, [HeardVersions(heard(1))]))
    assert sent == {B1: [change(2), change(3)]}


def test_neighbour_that_has_missed_more_than_is_remembered_gets_the_table(broker: Broker):
    broker.messages_arrived(C0, [table(2, "s1", "s2"), change(3)])
    sent = enqueued(broker.messages_arrived(B1, [HeardVersions(heard(1))]))
    assert sent == {B1: [table(3, "s1", "s2", "s3")]}


def test_neighbour_of_another_generation_gets_the_table(broker: Broker):
    broker.messages_arrived(C0, [change(1, generation=next_generation(FIRST, 5))])
    sent = enqueued(broker.messages_arrived(B1, [HeardVersions(heard(9))]))
    assert sent == {B1: [table(1, "s1", generation=next_generation(FIRST, 5))]}


def test_neighbour_that_has_heard_more_is_asked(broker: Broker):
    broker.messages_arrived(C0, [change(1)])
    sent = enqueued(broker.messages_arrived(B1, [HeardVersions(heard(4))]))
    assert sent == {B1: [HeardVersions(heard(1))]}


def test_comparing_tells_what_has_changed_and_only_once(broker: Broker):
    broker.messages_arrived(C0, [change(1, targets=CHAIN.bit(B0))])
    first = enqueued(broker.compare())
    assert first == {link: [HeardVersions(heard(1))] for link in (A0, B1, B2)}
    assert broker.compare() == []


def test_nothing_is_compared_over_links_that_are_down(broker: Broker):
    broker.messages_arrived(C0, [change(1, targets=CHAIN.bit(B0))])
    broker.link_down(B1)
    assert set(enqueued(broker.compare())) == {A0, B2}


def test_table_comes_in_parts_and_what_was_in_none_is_gone(broker: Broker):
    broker.messages_arrived(C0, [change(1), change(2)])
    broker.messages_arrived(B1, [table(5, "s2", last=False)])
    assert known(broker) == ["s1", "s2"]
    sent = enqueued(broker.messages_arrived(B1, [table(5, "s9")]))
    assert known(broker) == ["s2", "s9"]
    assert sent == {link: [HeardVersions(heard(5))] for link in (A0, C0, B2)}


def test_parts_of_a_link_that_broke_do_not_count(broker: Broker):
    broker.messages_arrived(C0, [change(1), change(2)])
    broker.messages_arrived(B1, [table(5, "s1", "s2", last=False)])
    broker.link_down(B1)
    broker.link_up(B1)
    broker.messages_arrived(B1, [table(5, "s9")])
    assert known(broker) == ["s9"]


def test_old_table_changes_nothing(broker: Broker):
    broker.messages_arrived(C0, [change(1), change(2)])
    assert broker.messages_arrived(B1, [table(1)]) == []
    assert known(broker) == ["s1", "s2"]


# After a restart


def fresh(life: int = 3) -> Broker:
    return Broker(B0, CHAIN, Algorithm.TNR, links_up=False, life=life)


def test_broker_that_hears_of_its_former_life_numbers_above_it():
    broker = fresh()
    broker.link_up(A0)
    broker.client_subscribes("client", "s", WANTED)
    before = next_generation(FIRST, 1)
    sent = enqueued(broker.messages_arrived(A0, [HeardVersions(heard(8, B0, before))]))
    newest = next_generation(before, 3)
    assert sent[A0][-1].known[B0] == (newest, 1)
    after = enqueued(broker.client_subscribes("client", "t", WANTED))
    assert (after[A0][0].generation, after[A0][0].after) == (newest, 1)


def test_own_change_of_a_former_life_makes_a_new_generation():
    broker = fresh()
    broker.link_up(A0)
    sent = enqueued(broker.messages_arrived(A0, [change(1, host=B0, generation=FIRST + 9)]))
    assert sent[A0][-1].known == {B0: (next_generation(FIRST + 9, 3), 0)}
    assert known(broker) == []


def test_broker_has_heard_enough_when_one_neighbour_has_told_it_all():
    broker = fresh()
    assert broker.unheard == sorted(CHAIN.neighbours(B0))
    broker.link_up(A0)
    broker.messages_arrived(A0, [HeardVersions(heard(1) | heard(0, B0))])
    assert broker.unheard == [C0]  # of which there is more than it has
    broker.messages_arrived(A0, [change(1)])
    assert broker.unheard == []


def test_neighbour_that_lacks_something_itself_is_not_enough():
    broker = fresh()
    for each in CHAIN.neighbours(B0):
        broker.link_up(each)
    broker.messages_arrived(A0, [HeardVersions({}, is_complete=False)])
    assert broker.unheard == sorted([C0, B1, B2])
    broker.messages_arrived(C0, [HeardVersions({}, is_complete=False)])
    broker.messages_arrived(B1, [HeardVersions({}, is_complete=False)])
    broker.messages_arrived(B2, [HeardVersions({}, is_complete=False)])
    assert broker.unheard == []  # nobody is left to ask


def test_broker_says_whether_it_has_heard_all():
    broker = fresh()
    greeting = enqueued(broker.link_up(A0))[A0]
    assert greeting == [HeardVersions({B0: (0, 0)}, is_complete=False)]
    broker.messages_arrived(A0, [HeardVersions({})])
    assert enqueued(broker.link_up(C0))[C0] == [HeardVersions({B0: (0, 0)})]


def test_restarted_broker_learns_all_and_its_old_subscriptions_are_forgotten():
    network = Network(CHAIN, Algorithm.TNR)
    network.subscribe(B0, "old", "old", WANTED)
    network.subscribe(C1, "other", "other", WANTED)
    network.settle()
    network.restart(B0)
    network.subscribe(B0, "new", "new", WANTED)
    for neighbour in CHAIN.neighbours(B0):
        network.restore(B0, neighbour)
    network.settle()
    assert {tuple(known(each)) for each in network.brokers.values()} == {("new", "other")}


# What a broken link has not taken


def test_what_was_on_the_queue_of_a_broken_link_is_routed_anew(broker: Broker):
    broker.messages_arrived(C0, [change(1, host=A1)])
    queued = enqueued(broker.client_publishes([ONE]))[B1]
    changed = enqueued(broker.client_subscribes("client", "s", WANTED))[B1]
    sent = enqueued(broker.link_down(B1, [*queued, *changed, HeardVersions({})]))
    assert sent[A0][0].targets == CHAIN.bit(A1)
    assert [each.targets for each in sent[B2]] == [CHAIN.bit(B1)]
    assert broker.counters.rerouted == 1
