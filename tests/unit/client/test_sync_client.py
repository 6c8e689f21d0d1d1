import threading

import pytest

import octopis
from octopis.client.sync_client import SyncClient
from octopis.errors import (
    ConnectionFailed,
    InvalidConfiguration,
    InvalidFilter,
    InvalidNotification,
    NotOpen,
)
from support.processes import BrokerProcess, free_ports


@pytest.fixture(scope="module")
def broker():
    process = BrokerProcess(free_ports(1), 0)
    process.wait_until_ready()
    yield process
    assert process.stop() == 0


def test_it_publishes_and_subscribes_without_async(broker: BrokerProcess):
    with octopis.connect_sync(broker.address) as client:
        assert isinstance(client, SyncClient)
        assert str(client.broker) == "B(r0, 0)"
        with client.subscribe("x > 1", "x > 2") as notifications:
            client.publish({"x": 3}, b"payload", intended_ns=5)
            found = next(notifications)
            assert (found.payload, found.intended_ns, found.publisher) == (b"payload", 5, client.id)
            assert set(found.subscriptions) == set(notifications.subscriptions)
            assert notifications.gaps == 0


def test_iterating_ends_where_nothing_comes_and_goes_on_later(broker: BrokerProcess):
    with octopis.connect_sync(broker.address) as client:
        with client.subscribe("x > 1", timeout_s=0.1) as notifications:
            assert list(notifications) == []
            client.publish_many([{"x": 2}, {"x": 3}])
            assert [each.attributes["x"] for each in notifications] == [2, 3]


def test_errors_are_the_same(broker: BrokerProcess):
    with octopis.connect_sync(broker.address) as client:
        with pytest.raises(InvalidNotification):
            client.publish({"x": None})  # type: ignore[dict-item]


def test_no_thread_is_left_behind(broker: BrokerProcess):
    before = threading.active_count()
    with octopis.connect_sync(broker.address):
        assert threading.active_count() == before + 1
    with pytest.raises(ConnectionFailed):
        octopis.connect_sync(f"octopis://127.0.0.1:{free_ports(1)[0]}").__enter__()
    with pytest.raises(InvalidConfiguration):
        octopis.connect_sync("nowhere")
    assert threading.active_count() == before


def test_it_has_what_the_async_client_has(broker: BrokerProcess):
    client = octopis.connect_sync(broker.address)
    client.open()
    notifications = client.subscribe("x > 1", names=["mine"], timeout_s=5)
    notifications.open()
    assert list(notifications.subscriptions) == ["mine"]
    assert notifications.next(timeout=0.05) is None
    client.publish_many([{"x": 2}, {"x": 3}])
    found = notifications.next(timeout=5)
    assert found is not None
    assert found.attributes == {"x": 2}
    (batch,) = [next(notifications.batches())]
    assert [each.attributes["x"] for each in batch] == [3]
    notifications.close()
    assert notifications.next(timeout=5) is None
    client.close()


def test_use_without_with_says_what_to_write(broker: BrokerProcess):
    client = octopis.connect_sync(broker.address)
    with pytest.raises(NotOpen, match="the client is not open: use"):
        client.publish({"x": 1})
    client.open()
    with pytest.raises(NotOpen, match="the stream is not open: use"):
        next(client.subscribe("x > 1"))
    client.close()
    with pytest.raises(NotOpen, match="the client is closed"):
        client.publish({"x": 1})
    client.close()  # once more does no harm


def test_what_makes_no_sense_is_refused_in_words(broker: BrokerProcess):
    with octopis.connect_sync(broker.address) as client:
        with pytest.raises(InvalidFilter, match="at least one filter"):
            client.subscribe()
        with pytest.raises(InvalidNotification, match="attributes are a mapping"):
            client.publish([("a", 1)])  # type: ignore[arg-type]
        with pytest.raises(InvalidNotification, match="for a single one use publish"):
            client.publish_many({"a": 1})  # type: ignore[arg-type]
        with pytest.raises(InvalidNotification, match="not a tuple of 1"):
            client.publish_many([({"a": 1},)])  # type: ignore[list-item]
        with pytest.raises(InvalidConfiguration, match="one for each filter"):
            client.subscribe("x = 1", "x = 2", names=["one"])
