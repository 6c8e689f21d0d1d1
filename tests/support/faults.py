"""Faults end when all links are up again: then nobody can tell that there were any."""

from octopis.core.filters import Filter
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT
from support.checks import check_next_hops_lead_to_hosts
from support.network import Network
from support.scenarios import Scenario, Subscriber, deliveries

Row = tuple[Filter, BrokerId | None, int, BrokerId]


def tables(network: Network) -> dict[BrokerId, dict[str, Row]]:
    """Return what each broker knows, without what may depend on the order of arrivals."""
    by_tree = network.algorithm is not Algorithm.BID
    return {
        name: {
            entry.subscription.id: (
                entry.subscription.filter,
                entry.last_hop if by_tree else None,
                entry.cbv_s,
                entry.host,
            )
            for entry in broker.table
        }
        for name, broker in network.brokers.items()
    }


def faultless(scot: SCOT, algorithm: Algorithm, living: list[Subscriber]) -> Network:
    network = Network(scot, algorithm)
    for each in living:
        network.subscribe(each.broker, each.client, each.identity, each.filter)
    network.settle()
    return network


def check_as_if_nothing_had_been(network: Network, living: list[Subscriber]) -> None:
    """Compare the tables with those of a network without faults, and try them out."""
    assert tables(network) == tables(faultless(network.scot, network.algorithm, living))
    if network.algorithm is Algorithm.BID:
        check_next_hops_lead_to_hosts(Scenario(network.scot, tuple(living), (), 0), network)
    network.delivered.clear()
    attributes = {"x": 1, "y": 1}
    for number, broker in enumerate(network.scot.brokers):
        network.publish(broker, Notification(attributes, str(number).encode()))
    network.settle(steps_max=len(network.scot.brokers) ** 2 * (len(living) + 1))
    assert deliveries(network) == sorted(
        (str(number).encode(), each.broker, each.client, each.identity)
        for number in range(len(network.scot.brokers))
        for each in living
        if each.filter.matches(attributes)
    )


def restore_everything(network: Network) -> None:
    for source, target in sorted(network.down):
        if (source, target) in network.down:
            network.restore(source, target)
