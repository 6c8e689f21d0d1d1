"""What the demonstration says to somebody who sees all this for the first time."""

from octopis.core.routing import Algorithm
from octopis.demo.workload import SHARE, Feed, SlowedLink
from octopis.scenario.folder import Scenario

TITLES = {
    Algorithm.BID: "routing by broker ids, the baseline",
    Algorithm.SNR: "static routing",
    Algorithm.DNR: "dynamic routing",
    Algorithm.TNR: "target routing, ours",
}
IDEAS = {
    Algorithm.BID: (
        "floods subscriptions over all links; a notification names its target brokers, and follows "
        "the tree that the first flood made."
    ),
    Algorithm.SNR: (
        "knows the clusters: it needs fewer messages, but a notification has one way and waits "
        "where that is slow."
    ),
    Algorithm.DNR: (
        "is SNR that looks at its queues: where a link is overloaded, a copy to another cluster "
        "takes the pending one along."
    ),
    Algorithm.TNR: (
        "matches once, where it is published: each copy carries its target brokers, and goes "
        "around any link that is overloaded or dead."
    ),
}


def overlay_sentence(scenario: Scenario) -> str:
    """Say what the overlay is."""
    scot = scenario.topology.scot
    return (
        f"{len(scot.brokers)} brokers run on this machine as real processes. They form "
        f"{len(scot.clusters)} clusters, each a copy of one tree of {len(scot.regions)} regions; "
        f"aCOLs are the tree's links, and iCOLs join the brokers of a region across clusters."
    )


def clients_sentence(scenario: Scenario, due: int) -> str:
    """Say who takes part, and what is due."""
    ordinary = sum(not each.high_rate for each in scenario.publishers)
    return (
        f"{len(scenario.subscribers)} subscribers ask for stock quotes of {ordinary} publishers, "
        f"or for the feed of one high-rate publisher. {scenario.notification_count:,} "
        f"notifications make {due:,} deliveries; Spark has worked out which."
    )


def slowed_sentence(link: SlowedLink, feed: Feed) -> str:
    """Say what is slowed down."""
    return (
        f"The high-rate publisher at {link.source} sends {feed.per_s:,.0f} notifications a "
        f"second. Its iCOL to {link.target} is slowed down to {SHARE:.0%} of that: a queue must "
        f"grow, or somebody must go around."
    )


def tree_sentence(link: SlowedLink) -> str:
    """Say whether BID has to use the slowed link as well."""
    if not link.hops_beyond:
        return (
            f"A subscriber of the feed sits at {link.target} itself, so the direct way of every "
            f"algorithm leads over the slowed link."
        )
    hops = f"{link.hops_beyond} hop{'s' if link.hops_beyond > 1 else ''}"
    return (
        f"The feed's subscriber in that cluster is {hops} further on: BID's tree may lead there "
        f"by another iCOL, and the table says how much went over the slowed link."
    )
