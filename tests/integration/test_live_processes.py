"""Broker processes start, say where they are, drain when told to stop, and leave nothing behind."""

import asyncio
import socket

import pytest

import octopis
from octopis.client.address import Address
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.overlay.deployment import running
from support.live import line, overlay, ready, run_live
from support.processes import BrokerProcess, broker_line, free_ports


def test_starts_and_stops_leave_no_process_and_no_port():
    ports = free_ports(2)
    for _ in range(4):
        brokers = [BrokerProcess(ports, number) for number in range(2)]
        for broker in brokers:
            broker.wait_until_ready()
        assert [broker.stop() for broker in brokers] == [0, 0]
        for port in ports:
            with socket.create_server(("127.0.0.1", port)):
                pass


def test_second_broker_at_the_same_place_says_so_clearly():
    ports = free_ports(1)
    first = BrokerProcess(ports, 0)
    try:
        first.wait_until_ready()
        second = BrokerProcess(ports, 0)
        _, printed = second.popen.communicate(timeout=20)
        assert second.popen.returncode != 0
        assert f"B(r0, 0) cannot listen at 127.0.0.1:{ports[0]}" in printed
        assert first.popen.poll() is None
    finally:
        assert first.stop() == 0


def test_broker_that_is_told_to_stop_lets_its_queues_empty_first():
    async def work() -> None:
        with broker_line(1) as (broker,):
            async with (
                octopis.connect(broker.address, reconnect_s=0.2) as client,
                client.subscribe("x >= 0") as notifications,
            ):
                await client.publish_many({"x": number} for number in range(5_000))
                stopping = asyncio.create_task(asyncio.to_thread(broker.stop))
                found = [(await anext(notifications)).attributes["x"] for _ in range(5_000)]
                assert found == list(range(5_000))
                assert await stopping == 0

    run_live(work())


def test_broker_does_not_listen_where_others_can_reach_it_unless_told_so():
    async def work() -> None:
        (broker,) = line(1).brokers
        everywhere = {broker: Address("0.0.0.0", 0)}  # noqa: S104 - that is the point
        with pytest.raises(InvalidConfiguration, match="insecure = true"):
            async with running(overlay(line(1), addresses=everywhere)):
                pass
        async with ready(overlay(line(1), addresses=everywhere, insecure=True)) as live:
            assert live[broker].address.port

    run_live(work())


def test_address_that_is_taken_is_a_clear_error():
    async def work() -> None:
        (broker,) = line(1).brokers
        with socket.create_server(("127.0.0.1", 0)) as taken:
            place = {broker: Address(port=taken.getsockname()[1])}
            with pytest.raises(OperationFailed, match=r"B\(a, 0\) cannot listen at 127.0.0.1"):
                async with running(overlay(line(1), addresses=place)):
                    pass

    run_live(work())


def test_scripts_and_notebooks_use_the_blocking_client():
    with broker_line(1) as (broker,):
        with (
            octopis.connect_sync(broker.address) as client,
            client.subscribe("price > 50", timeout_s=0.5) as notifications,
        ):
            client.publish({"price": 60}, b"one")
            assert (
                client.publish_many([{"price": 70}, ({"price": 80}, b"three"), {"price": 1}]) == 3
            )
            found = list(notifications)
            assert [each.attributes["price"] for each in found] == [60, 70, 80]
            assert [each.payload for each in found] == [b"one", b"", b"three"]
            client.publish({"price": 90})
            assert next(notifications).attributes == {"price": 90}
            assert client.status()["published"] == 5
        with pytest.raises(octopis.errors.InvalidFilter):
            with octopis.connect_sync(broker.address) as client:
                client.subscribe("price >")
