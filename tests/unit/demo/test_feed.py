from octopis.core.routing.messages import NotificationMessage
from octopis.core.wire.link import encode_message
from octopis.core.wire.published import decode_published, encode_published
from octopis.demo.workload import Feed


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
