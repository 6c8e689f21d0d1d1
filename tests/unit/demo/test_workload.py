from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from octopis.core.routing.messages import NotificationMessage
from octopis.core.topology import SCOT, LinkKind
from octopis.core.wire.link import encode_message
from octopis.core.wire.published import decode_published, encode_published
from octopis.demo.workload import FULL, SHARE, SMALL, Feed, SlowedLink, prepare, slowed_link
from octopis.pipeline.scenarios.truth import true_pairs
from octopis.scenario.folder import Scenario


def test_every_size_is_a_sound_plan_with_a_high_rate_publisher():
    for plan in (FULL, SMALL):
        plan.check()
        assert plan.high_rate_notifications > plan.publishers * plan.notifications_each / 2


def test_scenario_is_prepared_with_its_ground_truth(
    spark: SparkSession, tmp_path: Path, scenario: Scenario
):
    prepared = prepare(spark, SMALL, tmp_path / "scenario")
    assert prepared.scenario.notification_count == scenario.notification_count == 330
    assert [(each.name, each.broker) for each in prepared.scenario.publishers] == [
        (each.name, each.broker) for each in scenario.publishers
    ]
    assert prepared.due == true_pairs(spark, prepared.scenario).count() >= 900


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


def test_feed_is_the_high_rate_publishers_alone(feed: Feed):
    assert feed.host.short == "b,2"
    assert feed.count == 300
    assert feed.example["feed"] == "hrp"
    assert [each.broker.short for each in feed.subscribers] == ["b,0", "a,1", "d,2"]


def test_times_are_those_of_the_play(feed: Feed):
    assert feed.begin_s == 2.0
    assert round(feed.per_s) == 400


def test_size_is_what_a_notification_takes_on_a_link(feed: Feed):
    raw = encode_published(feed.example, b"", "hrp", 150, 1_700_000_000_000_000_000)
    (published,) = decode_published(b"\x91" + raw)
    _, item = encode_message(NotificationMessage(published))
    assert item == raw
    assert abs(len(item) - feed.bytes_each) < 5
