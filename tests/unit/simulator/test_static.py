from collections import Counter

from support.simulations import Publishes, Row, Setup, Subscribes, plain, ran, rows

US = 1000


def copies(ims: list[Row]) -> Counter[str]:
    """Return the links that copies of notifications were sent over."""
    return Counter(
        f"{row['source']}>{row['target']}" for row in ims if row["message"] == "notification"
    )


def test_copies_follow_the_shortest_trees_and_cross_clusters_at_the_publisher_only():
    setup = Setup(
        subscribers=tuple(map(Subscribes, ("c,0", "c,2", "a,1", "b,2"))),
        publications=(Publishes("a,0"),),
    )
    with ran(setup) as (_, trace):
        expected = "a,0>b,0 b,0>c,0 a,0>a,2 a,2>b,2 b,2>c,2 a,0>a,1"
        assert copies(rows(trace, "ims")) == Counter(expected.split())


def test_nothing_is_sent_where_nobody_wants_it():
    setup = Setup(subscribers=(Subscribes("c,0", "x = 2"),), publications=(Publishes("a,0", x=1),))
    with ran(setup) as (summary, trace):
        assert copies(rows(trace, "ims")) == Counter()
        (row,) = rows(trace, "publications")
        assert row["completed_ns"] == row["accepted_ns"] == row["intended_ns"] + 10 * US
        assert summary.deliveries == summary.deliveries_lost == 0


def test_publishers_own_broker_delivers_without_a_message():
    setup = Setup(subscribers=(Subscribes("a,0"),), publications=(Publishes("a,0"),))
    with ran(setup) as (summary, trace):
        (row,) = rows(trace, "deliveries")
        assert (row["broker"], row["hops"]) == ("a,0", 0)
        assert row["delivered_ns"] == summary.begin_ns + 10 * US
        assert summary.notification_ims == 0


def test_notification_takes_what_its_hops_take():
    setup = Setup(subscribers=(Subscribes("c,1"),), publications=(Publishes("a,0"),))
    with ran(setup) as (summary, trace):
        (row,) = rows(trace, "deliveries")
        assert row["hops"] == 3
        hop_us = 1 + 100 + 10  # sender, link, server
        assert row["delivered_ns"] == summary.begin_ns + (10 + 3 * hop_us) * US


def test_second_copy_waits_for_the_sender_that_all_links_share():
    setup = Setup(
        subscribers=(Subscribes("b,0"), Subscribes("a,1")),
        publications=(Publishes("a,0"),),
        costs=plain(send_overhead_us=50),
    )
    with ran(setup) as (summary, trace):
        delivered = {row["broker"]: row["delivered_ns"] for row in rows(trace, "deliveries")}
        assert delivered["b,0"] == summary.begin_ns + (10 + 50 + 110) * US
        assert delivered["a,1"] == summary.begin_ns + (10 + 100 + 110) * US


def test_every_broker_on_the_way_matches_against_its_whole_table():
    setup = Setup(
        subscribers=(Subscribes("c,0"), Subscribes("a,1", "x = 7"), Subscribes("a,1", "x = 8")),
        publications=(Publishes("a,0"),),
        costs=plain(matching_us=2, matching_per_subscription_ns=100),
    )
    with ran(setup) as (_, trace):
        (row,) = rows(trace, "publications")
        assert row["matching_ns"] == 3 * (2 * US + 3 * 100)
