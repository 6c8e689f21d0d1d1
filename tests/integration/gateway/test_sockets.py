"""The WebSocket, used by a client that nobody here wrote."""

import asyncio
from typing import Any

import pytest
from websockets.asyncio.client import connect

from octopis import connect_sync
from support.gateway import Gateway, curl, events
from support.gateway_socket import Socket, on_socket


def numbered(count: int, **attributes: Any) -> list[dict[str, Any]]:
    return [{"type": "publish", "attributes": {**attributes, "n": n}} for n in range(count)]


def test_socket_has_many_filters_and_publishes_arrays(gateway: Gateway):
    async def use(socket: Socket) -> None:
        await socket.say(
            {"type": "subscribe", "id": "low", "filter": "test = 'socket' AND n < 2"},
            {"type": "subscribe", "id": "high", "filter": "test = 'socket' AND n >= 2"},
        )
        told = await socket.take(2)
        assert [(each["type"], each["id"]) for each in told] == [
            ("subscribed", "low"),
            ("subscribed", "high"),
        ]
        await asyncio.to_thread(gateway.settled)
        publications = numbered(4, test="socket")
        publications[-1] |= {"request": 7, "payload": "aGk="}
        await socket.say(*publications)
        found = await socket.take(5)
        (accepted,) = [each for each in found if each["type"] == "accepted"]
        assert (accepted["count"], accepted["requests"]) == (4, [7])
        got = {
            (each["id"], each["attributes"]["n"])
            for each in found
            if each["type"] == "notification"
        }
        assert got == {("low", 0), ("low", 1), ("high", 2), ("high", 3)}
        await socket.say({"type": "unsubscribe", "id": "low"})
        assert await socket.next() == {"type": "unsubscribed", "id": "low"}
        await asyncio.to_thread(gateway.settled)
        await socket.say(*numbered(3, test="socket"))
        assert (await socket.next())["id"] == "high"

    on_socket(gateway, use)


def test_credit_holds_back_what_a_socket_has_not_asked_for(gateway: Gateway):
    async def use(socket: Socket) -> None:
        await socket.say(
            {"type": "credit", "count": 2},
            {"type": "subscribe", "id": "s", "filter": "test = 'credit'"},
        )
        await socket.next()
        await asyncio.to_thread(gateway.settled)
        await socket.say(*numbered(5, test="credit"))
        assert [each["attributes"]["n"] for each in await socket.take(2)] == [0, 1]
        with pytest.raises(TimeoutError):
            await socket.next(0.3)
        await socket.say({"type": "credit", "count": 3})
        assert [each["attributes"]["n"] for each in await socket.take(3)] == [2, 3, 4]

    on_socket(gateway, use)


def test_socket_reads_and_acknowledges_a_durable_subscription(gateway: Gateway):
    subscribe = {"type": "subscribe", "id": "d", "durable": "socketed"}

    async def first(socket: Socket) -> None:
        await socket.say({**subscribe, "filter": "test = 'kept'"})
        assert (await socket.next())["durable"] == "socketed"
        await asyncio.to_thread(gateway.settled)
        await socket.say(*numbered(4, test="kept"))
        found = await socket.take(4)
        assert [each["position"] for each in found] == [1, 2, 3, 4]
        await socket.say({"type": "ack", "id": "d", "position": 2})
        address = f"{gateway.url}/durable/socketed"
        kept = [3, 4]
        for _ in range(100):
            pulled = (await asyncio.to_thread(curl, address)).json["notifications"]
            if [each["position"] for each in pulled] == kept:
                return
            await asyncio.sleep(0.05)
        pytest.fail("what was acknowledged is still there")

    async def second(socket: Socket) -> None:
        await socket.say(subscribe)
        await socket.next()
        assert [each["attributes"]["n"] for each in await socket.take(2)] == [2, 3]

    on_socket(gateway, first)
    on_socket(gateway, second)


def test_mistakes_on_a_socket_are_told_one_by_one_and_end_nothing(gateway: Gateway):
    async def use(socket: Socket) -> None:
        await socket.connection.send("{nonsense")
        assert (await socket.next())["type"] == "error"
        await socket.say(
            {"type": "subscribe", "id": "bad", "filter": "price >"},
            {"type": "jump"},
            {"type": "publish", "attributes": {"a": [1]}, "request": "r"},
            {"type": "unsubscribe", "id": "nobody"},
            {"type": "subscribe", "id": "none", "durable": "nowhere"},
            {"type": "subscribe", "id": "good", "filter": "a = 1"},
        )
        told = await socket.take(6)
        assert [each["type"] for each in told] == ["error"] * 5 + ["subscribed"]
        assert [each["index"] for each in told[:5]] == [0, 1, 2, 3, 4]
        assert (told[0]["request"], told[0]["position"]) == ("bad", 8)
        assert told[2]["request"] == "r"
        await socket.say({"type": "subscribe", "id": "good", "filter": "a = 2"})
        assert "already" in (await socket.next())["detail"]

    on_socket(gateway, use)


def test_request_of_the_number_0_is_answered_by_that(gateway: Gateway):
    async def use(socket: Socket) -> None:
        await socket.say({"type": "publish", "attributes": {"a": [1]}, "request": 0})
        said = await socket.next()
        assert (said["type"], said["request"]) == ("error", 0)

    on_socket(gateway, use)


@pytest.mark.parametrize("position", [-1, 2**63, 2**70])
def test_position_that_there_cannot_be_disturbs_nobody_else(gateway: Gateway, position: int):
    async def use(socket: Socket) -> None:
        async with connect(f"ws://{gateway.address}/ws") as connection:
            other = Socket(connection)
            for each, name in ((socket, f"acks {position}"), (other, f"others {position}")):
                await each.say({"type": "subscribe", "id": "d", "durable": name, "filter": "z = 1"})
                assert (await each.next())["type"] == "subscribed"
            await asyncio.to_thread(gateway.settled)
            await socket.say({"type": "ack", "id": "d", "position": position})
            said = await socket.next()
            assert (said["type"], said["status"]) == ("error", 400)
            await other.say(*numbered(2, z=1))
            found = await other.take(2)
            assert [each["type"] for each in found] == ["notification"] * 2, "and no gap"

    on_socket(gateway, use)


def test_frame_of_too_many_messages_is_refused_however_right_they_are(gateway: Gateway):
    async def use(socket: Socket) -> None:
        await socket.say(*[{"type": "credit", "count": 1}] * 10_001)
        assert "at most 10,000 messages" in (await socket.next())["detail"]

    on_socket(gateway, use)


def test_client_that_takes_frames_of_one_mebibyte_gets_all_and_its_long_id_is_refused(
    gateway: Gateway,
):
    async def use(socket: Socket) -> None:
        asked = {"type": "subscribe", "id": "x" * 2**19, "durable": "long", "filter": "long = 1"}
        await socket.say(asked)
        said = await socket.next()
        assert (said["type"], said["status"]) == ("error", 400)
        await socket.say({"type": "credit", "count": 0}, {**asked, "id": "x"})
        assert (await socket.next())["type"] == "subscribed"
        await asyncio.to_thread(gateway.settled)
        with connect_sync(gateway.up.url("a,0")) as client:
            big = {"long": 1, "text": "x" * 20_000}
            await asyncio.to_thread(client.publish_many, [{**big, "n": n} for n in range(100)])
        await socket.say({"type": "credit", "count": 100})
        found = await socket.take(100)
        assert [each["attributes"]["n"] for each in found] == [*range(100)]

    on_socket(gateway, use)


@pytest.mark.parametrize("durable", [{}, {"durable": "unsubscribed"}])
def test_nothing_comes_for_a_subscription_that_has_ended_nor_for_another_of_its_name(
    gateway: Gateway, durable: dict[str, str]
):
    kind = len(durable)

    async def use(socket: Socket) -> None:
        await socket.say(
            {"type": "credit", "count": 0},
            {"type": "subscribe", "id": "a", "filter": f"ended = {kind}", **durable},
            {"type": "subscribe", "id": "b", "filter": f"ended = {kind}"},
        )
        assert [each["type"] for each in await socket.take(2)] == ["subscribed"] * 2
        await asyncio.to_thread(gateway.settled)
        await socket.say(*numbered(3, ended=kind))
        await asyncio.sleep(0.3)  # they wait here
        await socket.say(
            {"type": "unsubscribe", "id": "a"},
            {"type": "subscribe", "id": "a", "filter": f"begun = {kind}"},
        )
        assert [each["type"] for each in await socket.take(2)] == ["unsubscribed", "subscribed"]
        await asyncio.to_thread(gateway.settled)
        await socket.say(*numbered(1, begun=kind), {"type": "credit", "count": 10})
        found = await socket.take(4)
        told = sorted((each["id"], *each["attributes"]) for each in found)
        assert told == [("a", "begun", "n"), *[("b", "ended", "n")] * 3]

    on_socket(gateway, use)


def test_long_frames_are_published_in_order(gateway: Gateway):
    async def use(socket: Socket) -> None:
        publications = numbered(9_000, test="ordered")
        for first in range(0, 9_000, 3_000):
            await socket.say(*publications[first : first + 3_000])
        await socket.say({"type": "publish", "attributes": {"n": 0}, "request": "done"})
        assert (await socket.next())["requests"] == ["done"]

    with events(f"{gateway.url}/notifications", filter="test = 'ordered'") as stream:
        gateway.settled()
        on_socket(gateway, use)
        found = [each.data["attributes"]["n"] for each in stream.take(9_000)]
    assert found == [*range(9_000)]
