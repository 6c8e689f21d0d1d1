from dataclasses import replace

from octopis.core.topology import SCOT, LinkKind
from octopis.demo.workload import SHARE, Feed, SlowedLink, slowed_link


def test_link_leads_from_the_high_rate_publisher_to_the_nearest_other_cluster(
    scot: SCOT, feed: Feed, link: SlowedLink
):
    assert (link.short, str(link)) == ("b,2 → b,0", "B(b, 2) → B(b, 0)")
    assert scot.link_kind(link.source, link.target) is LinkKind.ICOL
    assert link.hops_beyond == 0
    others = replace(feed, subscribers=feed.subscribers[1:])
    further = slowed_link(scot, others)
    assert (further.short, further.hops_beyond) == ("b,2 → b,1", 1)


def test_own_cluster_needs_no_icol_and_is_not_chosen(scot: SCOT, feed: Feed):
    near = [each._replace(broker=scot.broker("a,2")) for each in feed.subscribers[:1]]
    moved = replace(feed, subscribers=near + feed.subscribers[1:])
    assert slowed_link(scot, moved).short == "b,2 → b,1"


def test_link_carries_a_share_of_the_feed(feed: Feed, link: SlowedLink):
    assert abs(link.bytes_per_s - SHARE * feed.per_s * feed.bytes_each) <= 0.5
