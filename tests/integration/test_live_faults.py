"""Cut links heal, killed brokers come back, and clients find their way again."""

import asyncio

import pytest
from msgspec.structs import replace

import octopis
from octopis.client.client import Client
from octopis.client.streams import Gap, Notifications
from octopis.core.routing import Algorithm
from octopis.errors import ConnectionFailed, ConnectionLost
from support.live import LIMITS, client_of, line, overlay, ready, run_live, tables_hold, until
from support.processes import broker_line

A, B, C = line(3).brokers


async def arrives(writer: Client, notifications: Notifications, number: int) -> None:
    """Publish until it arrives: routing has healed."""
    async with asyncio.timeout(20):
        while True:
            try:
                await writer.publish({"x": number})
            except ConnectionLost:
                continue  # we do not mind a second copy
            try:
                async with asyncio.timeout(0.2):
                    while (await anext(notifications)).attributes["x"] != number:
                        pass
            except TimeoutError:
                continue
            return


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_cut_link_heals(algorithm: Algorithm):
    async def work() -> None:
        async with (
            ready(overlay(line(3), algorithm)) as live,
            client_of(live[A]) as writer,
            client_of(live[C]) as reader,
            reader.subscribe("x >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            link = live[B].links[C]
            link.connection.abort("cut by the test")
            await until(lambda: not live[C].links[B].is_up)
            await until(lambda: link.is_up and live[C].links[B].is_up)
            assert link.reconnects == 1
            await arrives(writer, notifications, 1)
            async with reader.subscribe("y > 0"):
                await tables_hold(live, 2)

    run_live(work())


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_killed_broker_returns_with_its_table_before_it_takes_publications(algorithm: Algorithm):
    async def work() -> None:
        with broker_line(3, algorithm.value) as (first, middle, last):
            async with (
                octopis.connect(first.address) as writer,
                octopis.connect(last.address) as reader,
                reader.subscribe("x >= 0") as notifications,
            ):
                await arrives(writer, notifications, 1)
                middle.kill()
                await until_link_is(writer, up=False)
                await writer.publish({"x": 2})  # accepted, and lost: there is no way
                middle.restart()
                # Its very first publication needs the table that its neighbours give back.
                async with patiently_connected(middle.address) as local:
                    await local.publish({"x": 3})
                async with asyncio.timeout(10):
                    assert (await anext(notifications)).attributes == {"x": 3}
                await arrives(writer, notifications, 4)
                assert notifications.gaps == 0  # the subscriber's own broker never went away

    run_live(work())


async def until_link_is(client: Client, *, up: bool) -> None:
    """Wait until the client's broker has its only link up, or down."""
    async with asyncio.timeout(20):
        while True:
            (link,) = (await client.status())["links"].values()
            if link["up"] is up:
                return
            await asyncio.sleep(0.02)


class patiently_connected:  # noqa: N801 - used like a function
    """Connect as soon as the broker listens."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def __aenter__(self) -> Client:
        async with asyncio.timeout(20):
            while True:
                self._client = octopis.connect(self._address)
                try:
                    await self._client.open()
                except ConnectionFailed:
                    await asyncio.sleep(0.02)
                else:
                    return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


def test_subscriber_of_a_killed_broker_subscribes_again_and_hears_of_the_gap():
    async def work() -> None:
        with broker_line(2) as (first, last):
            gaps: list[Gap] = []
            async with (
                octopis.connect(first.address) as writer,
                octopis.connect(last.address) as reader,
                reader.subscribe("x >= 0", on_gap=gaps.append) as notifications,
            ):
                await arrives(writer, notifications, 1)
                last.kill()
                await until_link_is(writer, up=False)
                last.restart()
                await arrives(writer, notifications, 2)
                (gap,) = gaps
                assert "the connection was lost" in gap.reason
                assert gap.dropped is None
                assert notifications.gaps == 1

    run_live(work())


def test_client_moves_on_to_the_next_address_and_its_subscription_follows():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            first, last = live.values()
            both = f"octopis://{first.address},{last.address}"
            async with (
                octopis.connect(both) as reader,
                client_of(last) as writer,
                reader.subscribe("x >= 0") as notifications,
            ):
                await tables_hold(live, 1)
                assert reader.broker == A
                # The first broker does not notice that the client is gone, and takes no other.
                first.listening.close()
                first.clients[reader.id].connection._transport.pause_reading()
                reader._connection._transport.abort()
                await until(lambda: reader.id in last.clients)
                assert reader.id in first.clients
                await until(lambda: [entry.host for entry in first.core.table] == [B])
                await writer.publish({"x": 1})
                assert (await anext(notifications)).attributes == {"x": 1}

    run_live(work())


def test_silent_neighbour_is_noticed():
    async def work() -> None:
        limits = replace(LIMITS, keepalive_s=0.2, silence_s=0.7)
        async with ready(overlay(line(2), limits=limits)) as live:
            first, last = live.values()
            # Its bytes get lost on the way, as where a cable is pulled: no end of file comes.
            first.links[B].connection._transport.pause_reading()
            first.links[B].connection.write = lambda _: None
            await until(lambda: last.links[A].reconnects == 1 or not last.links[A].is_up)
            await until(lambda: last.links[A].is_up and first.links[B].is_up)

    run_live(work())


def test_client_gives_up_after_its_time_and_says_so():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            client = client_of(live[A], reconnect_s=0.3)
            await client.open()
            stream = client.subscribe("x > 0")
            await stream.__aenter__()
        with pytest.raises(ConnectionFailed, match=r"gave up after 0\.3 s"):
            await anext(stream)
        with pytest.raises(ConnectionFailed, match=r"gave up after 0\.3 s"):
            await client.publish({"x": 1})
        await client.close()

    run_live(work())


def test_nobody_there_is_a_clear_error():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            address = live[A].address
        with pytest.raises(ConnectionFailed, match=f"no broker can be reached at .*{address.port}"):
            await octopis.connect(f"octopis://{address}").open()

    run_live(work())
