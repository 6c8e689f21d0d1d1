import asyncio
import secrets
import socket

import pytest

import octopis
from octopis.client.address import Address
from octopis.client.client import Client
from octopis.core.filters import attr, parse_filter
from octopis.errors import (
    ConnectionFailed,
    ConnectionLost,
    InvalidConfiguration,
    InvalidFilter,
    InvalidSubscription,
)
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

(HERE,) = line(1).brokers


SECRET = secrets.token_hex(8)


def with_client(work, **options) -> None:
    """Run work(client, live broker) with one broker."""

    async def whole() -> None:
        async with ready(overlay(line(1))) as live, client_of(live[HERE], **options) as client:
            await work(client, live[HERE])

    run_live(whole())


def test_client_is_exported_at_the_top_of_the_package():
    assert octopis.Client is Client
    assert isinstance(octopis.connect("octopis://127.0.0.1:1"), Client)
    assert set(octopis.__all__) <= set(dir(octopis)) | set(octopis._HOMES)
    with pytest.raises(AttributeError, match="has no attribute 'conect'"):
        octopis.conect  # noqa: B018


def test_client_knows_its_broker_and_has_a_name_of_its_own():
    async def work(client: Client, broker) -> None:
        assert client.broker == HERE
        assert list(broker.clients) == [client.id]
        assert client.id != Client("octopis://h").id

    with_client(work)


def test_client_tries_all_addresses_in_turn_until_one_has_a_broker():
    async def work(_: Client, broker) -> None:
        dead = "127.0.0.1:9"
        async with octopis.connect(f"octopis://{dead},{broker.address}") as client:
            assert client.broker == HERE
        with pytest.raises(ConnectionFailed) as failed:
            await octopis.connect(f"octopis://{dead},127.0.0.1:10").open()
        for address in (dead, "127.0.0.1:10"):
            assert f"no broker can be reached at octopis://{address}" in str(failed.value)

    with_client(work)


def test_client_waits_for_an_overlay_that_is_starting():
    async def whole() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        place = overlay(line(1), addresses={HERE: Address("127.0.0.1", port)})
        waiting = asyncio.create_task(octopis.connect(f"octopis://127.0.0.1:{port}").open())
        with pytest.raises(ConnectionFailed):
            await waiting
        client = octopis.connect(f"octopis://127.0.0.1:{port}", retry_s=30)
        opening = asyncio.create_task(client.open())
        await asyncio.sleep(0.2)
        assert not opening.done()
        async with ready(place):
            await asyncio.wait_for(opening, 20)
            assert client.broker == HERE
            await client.close()

    run_live(whole())


def test_bad_filter_is_refused_at_once_and_costs_nothing():
    async def work(client: Client, broker) -> None:
        with pytest.raises(InvalidFilter, match="at column"):
            client.subscribe("x > 1", "price >")
        with pytest.raises(InvalidConfiguration, match="no filter dialect"):
            client.subscribe("x > 1", dialect="xpath")
        assert not broker.core.table

    with_client(work)


def test_filters_of_every_kind_can_be_mixed():
    async def work(client: Client, broker) -> None:
        padres = client.subscribe("[class,eq,'stock'],[x,>,3]", dialect="padres")
        python = client.subscribe(attr("x") > 3, "y = 1")
        async with padres, python:
            await tables_hold({HERE: broker}, 3)
            await client.publish({"class": "stock", "x": 5, "y": 1})
            assert len((await anext(padres)).subscriptions) == 1
            assert len((await anext(python)).subscriptions) == 2

    with_client(work)


def test_refused_subscription_raises_the_brokers_error_and_leaves_nothing():
    async def work(client: Client, broker) -> None:
        taken = f"{client.id}/1"
        broker.core.client_subscribes("somebody else", taken, parse_filter("x > 1"))
        stream = client.subscribe("x > 1", "x > 2")
        with pytest.raises(InvalidSubscription, match="is another's") as error:
            await stream.__aenter__()
        assert error.value.subscription == taken
        assert [entry.subscription.id for entry in broker.core.table] == [taken]
        assert stream not in client._streams

    with_client(work)


def test_client_of_the_same_name_takes_the_place_of_the_older():
    async def work(client: Client, broker) -> None:
        same = {"client_id": client.id, "secret": SECRET, "reconnect_s": 0.1}
        async with client_of(broker, **same) as newer:
            await until(lambda: newer.broker is not None)
            assert len(broker.clients) == 1

    with_client(work, reconnect_s=0.1, secret=SECRET)


def test_name_is_the_first_clients_as_long_as_it_is_here():
    async def work(client: Client, broker) -> None:
        with pytest.raises(ConnectionFailed, match=f"the name '{client.id}' is another client's"):
            await client_of(broker, client_id=client.id).open()
        await client.publish({"x": 1})
        assert list(broker.clients) == [client.id]

    with_client(work, reconnect_s=0.1)


def test_closed_client_says_so():
    async def work(client: Client, broker) -> None:
        stream = await client.subscribe("x > 0").__aenter__()
        await client.close()
        with pytest.raises(ConnectionLost, match="the client is closed"):
            await client.publish({"x": 1})
        assert [each async for each in stream] == []
        await until(lambda: not broker.clients)
        assert not broker.core.table

    with_client(work)


def test_broker_that_refuses_is_named_with_its_reason():
    async def work(_: Client, broker) -> None:
        with pytest.raises(ConnectionFailed, match="refuses the connection: a client needs"):
            await client_of(broker, client_id="x" * 200).open()

    with_client(work)


def test_server_that_is_no_broker_is_a_clear_error():
    async def work() -> None:
        async def answer(reader, writer) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await reader.read(10)
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ConnectionFailed, match="makes no sense"):
                await octopis.connect(f"octopis://127.0.0.1:{port}").open()

    run_live(work())


def test_server_that_says_nothing_is_a_clear_error():
    async def work() -> None:
        async def silent(reader, writer) -> None:
            await reader.read(-1)
            writer.close()

        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ConnectionFailed, match=r"no broker answers .* within 0\.2 s"):
                await octopis.connect(f"octopis://127.0.0.1:{port}", connect_s=0.2).open()

    run_live(work())
