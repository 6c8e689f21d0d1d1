"""What must hold of a network in which everything has arrived. Each check raises AssertionError.

The checks know the filters, the overlay and what travelled; they ask the core for nothing but
its tables.
"""

from collections import Counter

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing import Algorithm, Enqueue, NotificationMessage, Reason
from support.network import Network, Step
from support.scenarios import Scenario, deliveries, routes


def check_all(scenario: Scenario, network: Network) -> None:
    """Check whatever must hold under the network's algorithm."""
    check_tables(scenario, network)
    check_deliveries(scenario, network)
    if network.algorithm is Algorithm.TNR:
        check_targets_are_divided(network)
        return
    check_subscription_cost(scenario, network)
    if network.algorithm is Algorithm.BID:
        check_next_hops_lead_to_hosts(scenario, network)
        return
    check_trees_are_shortest(scenario, network)
    check_every_cluster_is_entered_once(scenario, network)
    if network.algorithm is Algorithm.SNR:
        check_paths_are_shortest(scenario, network)
    else:
        check_copies_follow_the_cases(network)


def check_tables(scenario: Scenario, network: Network) -> None:
    """Every broker holds every subscription exactly once."""
    expected = sorted((each.identity, each.broker) for each in scenario.subscribers)
    for broker in network.brokers.values():
        assert sorted((entry.subscription.id, entry.host) for entry in broker.table) == expected


def check_subscription_cost(scenario: Scenario, network: Network) -> None:
    """Each subscription costs the same number of IMs, wherever it is made."""
    scot = scenario.scot
    if network.algorithm is Algorithm.BID:
        each = 2 * (len(scot.acols) + len(scot.icols)) - len(scot.brokers) + 1
    else:
        each = len(scot.brokers) - 1
    spent = sum(sent.reason is Reason.SUBSCRIPTION for sent in network.sent)
    assert spent == each * len(scenario.subscribers)
    counted = sum(broker.counters.subscription_ims for broker in network.brokers.values())
    assert counted == spent


def check_deliveries(scenario: Scenario, network: Network) -> None:
    """Exactly what the filters say arrives, exactly once, and nothing is counted as lost."""
    assert deliveries(network) == scenario.wanted_deliveries()
    for broker in network.brokers.values():
        assert broker.counters.lost_on_down_links == broker.counters.lost_without_route == 0


def check_targets_are_divided(network: Network) -> None:
    """TNR: what comes to a broker leaves it with each of its targets once, but the broker's own."""
    own = network.scot.bit
    for step in network.steps:
        left: Counter[bytes] = Counter()
        for effect in step.effects:
            for copy in effect.messages if isinstance(effect, Enqueue) else ():
                if isinstance(copy, NotificationMessage):
                    assert copy.targets
                    left[copy.notification.payload] += copy.targets
        if step.sender is not None:
            came: Counter[bytes] = Counter()
            for message in step.messages:
                if isinstance(message, NotificationMessage):
                    came[message.notification.payload] += message.targets & ~own(step.broker)
            assert left == +came


def check_trees_are_shortest(scenario: Scenario, network: Network) -> None:
    """The way back along last hops is as long as a shortest path."""
    for subscriber in scenario.subscribers:
        for start in scenario.scot.brokers:
            at, hops = start, 0
            while at != subscriber.broker:
                entry = network.brokers[at].table.get(subscriber.identity)
                assert entry is not None
                assert entry.last_hop is not None
                assert entry.cbv_s == ClusterBitVector.of([subscriber.broker.cluster])
                at, hops = entry.last_hop, hops + 1
                assert hops <= scenario.scot.longest_path
            assert hops == scenario.scot.distance(start, subscriber.broker)


def check_next_hops_lead_to_hosts(scenario: Scenario, network: Network) -> None:
    """From every broker the next hops lead to every host, with no loop."""
    for host in {subscriber.broker for subscriber in scenario.subscribers}:
        for start in scenario.scot.brokers:
            at, seen = start, set()
            while at != host:
                assert at not in seen, f"next hops from {start} to {host} loop"
                seen.add(at)
                found = network.brokers[at]._subscriptions.next_hop(host)
                assert found is not None, f"{at} knows no way to {host}"
                at = found


def check_every_cluster_is_entered_once(scenario: Scenario, network: Network) -> None:
    """Each other cluster with a match is entered by one iCOL, and no other; no broker twice."""
    for publication in scenario.publications:
        senders = routes(network, publication.notification.payload)
        entered = Counter(
            target.cluster for target, source in senders.items() if target.cluster != source.cluster
        )
        wanted = {
            subscriber.broker.cluster
            for subscriber in scenario.subscribers
            if subscriber.filter.matches(publication.notification.attributes)
        }
        assert entered == Counter(wanted - {publication.broker.cluster})


def check_paths_are_shortest(scenario: Scenario, network: Network) -> None:
    """SNR: paths have at most one iCOL, and are as short as can be."""
    scot = scenario.scot
    starts = {each.notification.payload: each.broker for each in scenario.publications}
    for delivered in network.delivered:
        start = starts[delivered.notification.payload]
        senders = routes(network, delivered.notification.payload)
        at, hops, icols = delivered.broker, 0, 0
        while at != start:
            icols += at.cluster != senders[at].cluster
            at, hops = senders[at], hops + 1
        assert icols == (delivered.broker.cluster != start.cluster)
        assert hops == scot.distance(start, delivered.broker) <= scot.diameter + icols


def check_copies_follow_the_cases(network: Network) -> None:
    """DNR: each broker puts copies where the rules say, as it saw its links."""
    for step in network.steps:
        routed = [message for message in step.messages if isinstance(message, NotificationMessage)]
        if step.sender is None or len(routed) == len(step.messages) == 1:
            _check_copies(network, step, routed[0] if routed else None)


def _check_copies(network: Network, step: Step, arrived: NotificationMessage | None) -> None:
    actual = {
        effect.link: (message, reason)
        for effect in step.effects
        if isinstance(effect, Enqueue)
        for message, reason in zip(effect.messages, effect.reasons, strict=True)
    }
    if not actual:
        return
    notification = next(iter(actual.values()))[0].notification
    behind = {
        entry.last_hop
        for entry in network.brokers[step.broker].table
        if entry.subscription.filter.matches(notification.attributes)
    } - {None, step.sender}
    own = step.broker.cluster
    acols = {link for link in behind if link.cluster == own}
    if arrived is None:
        icols = behind - acols
    else:
        icols = {BrokerId(step.broker.region, cluster) for cluster in arrived.cbv_p}

    def load(link: BrokerId) -> tuple[int, int, str]:
        return step.queue_lengths[link], link.cluster, link.region

    late = icols & step.overloaded
    free = icols - late
    expected = dict.fromkeys(acols | free, frozenset[int]())
    reason, carrier = Reason.MATCH, None
    if late and free:
        reason, carrier = Reason.CASE_I, min(free, key=load)
    elif late and acols and min(acols, key=load) not in step.overloaded:
        reason, carrier = Reason.CASE_II, min(acols, key=load)
    elif late:
        reason, carrier = Reason.CASE_III, min(late, key=load)
    if carrier is not None:
        expected[carrier] = frozenset(link.cluster for link in late if link != carrier)
        assert actual[carrier][1] is reason
    assert {link: frozenset(message.cbv_p) for link, (message, _) in actual.items()} == expected
    # The paper's two promises, once more in its own words.
    onto_overloaded_icols = [link for link in actual if link.cluster != own and link in late]
    assert len(onto_overloaded_icols) == (reason is Reason.CASE_III)
