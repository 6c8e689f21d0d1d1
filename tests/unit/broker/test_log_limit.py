import logging

from octopis.broker.connection import LogLimit

LOG = logging.getLogger("octopis.test")


def test_lines_past_the_limit_are_left_out_and_counted(caplog):
    limit = LogLimit(LOG, lines_per_s=3)
    for number in range(10):
        limit.say(5.1, "bad peers", "peer %d is bad", number)
    assert [record.message for record in caplog.records] == [
        "peer 0 is bad",
        "peer 1 is bad",
        "peer 2 is bad",
    ]
    limit.say(6.0, "bad peers", "peer %d is bad", 11)
    assert caplog.records[-2].message == "bad peers: 7 more lines like the last were left out"
    assert caplog.records[-1].message == "peer 11 is bad"


def test_kinds_are_limited_apart(caplog):
    limit = LogLimit(LOG, lines_per_s=1)
    limit.say(5.0, "one", "first")
    limit.say(5.0, "other", "second")
    assert [record.message for record in caplog.records] == ["first", "second"]


def test_next_second_starts_anew(caplog):
    limit = LogLimit(LOG, lines_per_s=1)
    for second in range(3):
        limit.say(float(second), "one", "line %d", second)
    assert len(caplog.records) == 3
