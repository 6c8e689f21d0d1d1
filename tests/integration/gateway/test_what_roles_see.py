"""What comes through a gateway is what the role of the token may see."""

import asyncio
import json

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from support.gateway import (
    curl,
    events,
    post,
)
from support.secured import Secured, bearer


def test_reader_gets_what_its_role_may_see_and_nothing_else(secured: Secured):
    url = f"{secured.url}/notifications"
    with events(url, *bearer(secured.token("rita")), filter="price > 0") as stream:
        secured.settled()
        secured.publish({"price": 500}, {"price": 50}, {"price": 999}, {"price": 51})
        assert [each.data["attributes"]["price"] for each in stream.take(2)] == [50, 51]


def test_readers_of_one_filter_with_other_roles_share_nothing(secured: Secured):
    url = f"{secured.url}/notifications"
    with (
        events(url, *bearer(secured.token("rita")), filter="price > 1") as few,
        events(url, *bearer(secured.token("kim")), filter="price > 1") as all_,
    ):
        secured.settled()
        secured.publish({"price": 500}, {"price": 60})
        assert [each.data["attributes"]["price"] for each in all_.take(2)] == [500, 60]
        assert few.next().data["attributes"] == {"price": 60}


def test_durable_subscription_is_its_users_own(secured: Secured):
    url = secured.url
    kim = bearer(secured.token("kim"))
    with events(f"{url}/notifications", *kim, durable="mine", filter="price > 700") as stream:
        secured.settled()
        secured.publish({"price": 701}, {"price": 702})
        assert [each.data["attributes"]["price"] for each in stream.take(2)] == [701, 702]
    found = curl(f"{url}/durable/mine?max=10", *kim)
    assert [each["position"] for each in found.json["notifications"]] == [1, 2]
    assert post(f"{url}/durable/mine/ack", {"position": 1}, *kim).status == 200
    found = curl(f"{url}/durable/mine?max=10", *kim)
    assert [each["position"] for each in found.json["notifications"]] == [2]
    assert curl(f"{url}/durable/mine", *bearer(secured.token("operator"))).status == 404
    assert curl(f"{url}/durable/mine", *bearer(secured.token("rita"))).status == 403


def test_socket_says_who_it_is_in_its_first_message(secured: Secured):
    asyncio.run(_introduced(secured))


async def _introduced(secured: Secured) -> None:
    async with connect(f"ws://{secured.gateway.address}/ws") as socket:
        await socket.send(json.dumps({"token": secured.token("rita")}))
        await socket.send('{"type": "subscribe", "id": "a", "filter": "price > 0"}')
        [said] = json.loads(await socket.recv())
        assert said["type"] == "subscribed"
        await socket.send('{"type": "publish", "attributes": {"price": 1}, "request": 1}')
        [said] = json.loads(await socket.recv())
        assert (said["type"], said["status"]) == ("error", 403)
    async with connect(f"ws://{secured.gateway.address}/ws") as socket:
        await socket.send(json.dumps({"token": secured.token("rita")[:-4] + "AAAA"}))
        [said] = json.loads(await socket.recv())
        assert (said["type"], said["status"]) == ("error", 401)
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
