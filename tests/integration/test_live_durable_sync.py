"""Durable subscriptions without async: the same names, and the same meaning."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import octopis
from octopis.broker.settings import Durability
from octopis.core.routing import Algorithm
from octopis.errors import InvalidSubscription
from support.live import in_a_thread, line, overlay


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    durability = Durability(str(tmp_path))
    with in_a_thread(overlay(line(1), Algorithm.TNR, durability=durability)) as urls:
        yield urls["a,0"]


def numbers(received: list[octopis.Received]) -> list[object]:
    return [each.attributes["n"] for each in received]


def test_what_was_taken_is_acknowledged_and_the_rest_comes_next_time(url: str):
    with octopis.connect_sync(url) as client:
        with client.subscribe("n >= 0", durable="risk", timeout_s=5) as stream:
            assert isinstance(stream, octopis.SyncDurableNotifications)
            client.publish_many({"n": n} for n in range(100))
            assert numbers([next(stream) for _ in range(30)]) == list(range(30))
            assert (stream.name, stream.position, stream.gaps) == ("risk", 30, 0)
        assert stream.acked == 30
        with client.subscribe(durable="risk", timeout_s=5) as stream:
            batch = next(stream.batches())
            assert numbers(batch) == list(range(30, 100))
        (info,) = client.durables()
        assert (info.name, info.acked, info.lag) == ("risk", 100, 0)


def test_leaving_by_an_error_acknowledges_nothing_more(url: str):
    with octopis.connect_sync(url) as client:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the error ends the stream
            with client.subscribe("n >= 0", durable="risk", timeout_s=5) as stream:
                client.publish_many({"n": n} for n in range(3))
                next(stream)
                raise ZeroDivisionError
        with client.subscribe(durable="risk", timeout_s=5) as stream:
            assert next(stream).position == 1


def test_acks_by_hand_reading_a_range_again_and_dropping(url: str):
    with octopis.connect_sync(url) as client:
        with client.subscribe("n >= 0", durable="risk", acks="manual", timeout_s=5) as stream:
            client.publish_many({"n": n} for n in range(20))
            taken = [next(stream) for _ in range(10)]
            stream.ack(4)
            found = client.read("risk", 4, 3)
            assert found.notifications == taken[4:7]
            client.ack("risk", stream.epoch, 6)
        with client.subscribe(durable="risk", start=9, timeout_s=5) as stream:
            assert next(stream).position == 9
        client.drop_durable("risk")
        assert client.durables() == []
        with pytest.raises(InvalidSubscription, match="no durable subscription"):
            client.read("risk", 0)


def test_waiting_in_vain_again_and_again_costs_nothing_and_loses_nothing(
    url: str, caplog: pytest.LogCaptureFixture
):
    with octopis.connect_sync(url) as client:
        with client.subscribe("n >= 0", durable="risk", timeout_s=0.01) as stream:
            for _ in range(20):
                assert stream.next(timeout=0.01) is None
                assert list(stream) == []
            client.publish({"n": 1})
            found = stream.next(timeout=5)
            assert found is not None
            assert found.position == 1
    assert "lost its connection" not in caplog.text


def test_streams_may_be_opened_and_left_as_often_as_one_likes(
    url: str, caplog: pytest.LogCaptureFixture
):
    with octopis.connect_sync(url) as client:
        for _ in range(20):
            with client.subscribe("n >= 0", durable="risk", timeout_s=0.01) as stream:
                assert list(stream) == []
        client.publish({"n": 1})
        with client.subscribe(durable="risk", timeout_s=5) as stream:
            assert next(stream).position == 1
    assert "lost its connection" not in caplog.text
