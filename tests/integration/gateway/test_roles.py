"""A gateway of an overlay with security: each role at each door."""

import asyncio
import json
import time

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from support.gateway import (
    Answer,
    curl,
    post,
)
from support.secured import USERS, Secured, bearer


def ask(  # noqa: PLR0911 - each door is one case
    secured: Secured, door: str, words: tuple[str, ...]
) -> int:
    """Return with which status a door answers."""
    url, price = secured.url, {"price": 5}
    match door:
        case "publish":
            return post(f"{url}/notifications", price, *words).status
        case "lines":
            kind = ("-H", "content-type: application/x-ndjson")
            lines = b'{"price": 5}\n{"price": 6}\n'
            return curl(f"{url}/notifications", *kind, *words, data=lines).status
        case "events":
            return begun(secured, "/notifications?filter=price%20%3E%201", words)
        case "socket":
            return asyncio.run(socket_status(secured, words))
        case "pull":
            return curl(f"{url}/durable/none?max=1", *words).status
        case "ack":
            return post(f"{url}/durable/none/ack", {"position": 0}, *words).status
        case "live":
            return begun(secured, "/overlay/live", words)
        case "explain":
            asked = {"publish": "a,0", "attributes": {}, "subscribers": []}
            return post(f"{url}/routes/explain", asked, *words).status
        case "check":
            return post(f"{url}/filters/check", {"filter": "price > 1"}, *words).status
        case _:
            return curl(f"{url}/{door}", *words).status


def begun(secured: Secured, place: str, words: tuple[str, ...]) -> int:
    """Return the status of a stream; one that has begun is left again."""
    connection = secured.gateway.connection()
    connection.request("GET", place, headers=headers_of(words))
    with connection.getresponse() as found:
        connection.close()
        return found.status


def headers_of(words: tuple[str, ...]) -> dict[str, str]:
    return {"Authorization": words[1].partition(": ")[2]} if words else {}


async def socket_status(secured: Secured, words: tuple[str, ...]) -> int:
    headers = headers_of(words)
    try:
        async with connect(f"ws://{secured.gateway.address}/ws", additional_headers=headers) as one:
            if not words:  # it waits for the first message, which is not who this is
                await one.send('{"type": "credit", "count": 1}')
                [said] = json.loads(await one.recv())
                return int(said["status"])
            await one.send('{"type": "subscribe", "id": "a", "filter": "price > 1"}')
            [said] = json.loads(await one.recv())
            return int(said.get("status", 200))
    except InvalidStatus as refused:
        return refused.response.status_code


DOORS = (
    *("publish", "lines", "events", "socket", "pull", "ack"),
    *("overlay", "overlay/status", "overlay/brokers/a,0", "live", "explain", "check"),
)
WRITING, READING = ("publish", "lines"), ("events", "socket")
KEEPING = ("pull", "ack")
WATCHING = ("overlay", "overlay/status", "overlay/brokers/a,0", "live", "explain")


def expected(user: str, door: str) -> int:
    allowed = {
        "pat": WRITING,
        "rita": READING,
        "kim": (*READING, *KEEPING),
        "wim": WATCHING,
        "operator": DOORS,
    }[user]
    if door == "check":  # anybody's who is known
        return 200
    if door not in allowed:
        # Who sees the status may know of all durable subscriptions, and of none by this name.
        return 404 if (user, door) in {("wim", "pull"), ("wim", "ack")} else 403
    if door in KEEPING:
        return 404
    return 202 if door in WRITING else 200


@pytest.mark.parametrize("user", USERS)
def test_each_role_is_let_through_the_doors_that_are_its_own(secured: Secured, user: str):
    words = bearer(secured.token(user))
    found = {door: ask(secured, door, words) for door in DOORS}
    assert found == {door: expected(user, door) for door in DOORS}


@pytest.mark.parametrize("kind", ["no token", "no JSON Web Token", "a bad one", "an expired one"])
def test_who_is_not_known_is_let_in_nowhere(secured: Secured, kind: str):
    good = secured.token("operator")
    token = {
        "no token": None,
        "no JSON Web Token": "hunter2",
        "a bad one": good[:-8] + "AAAAAAA" + good[-1],
        "an expired one": secured.folder.token("operator", 60, now=time.time() - 120),
    }[kind]
    assert {door: ask(secured, door, bearer(token)) for door in DOORS} == dict.fromkeys(DOORS, 401)
    found = curl(f"{secured.url}/overlay", *bearer(token))
    assert found.headers["www-authenticate"].startswith("Bearer")
    assert found.headers["content-type"] == "application/problem+json"
    if token is not None:
        assert token not in found.body + secured.log() + curl(f"{secured.url}/metrics").body


def test_page_and_description_are_for_everybody_and_tell_nothing_of_the_overlay(secured: Secured):
    for place in ("", "docs", "openapi.json", "metrics", "static/js/main.js", "favicon.ico"):
        found = curl(f"{secured.url}/{place}")
        assert found.status == 200, place
        assert secured.gateway.up.addresses["a,0"] not in found.body


def test_refusal_is_the_sentence_of_the_broker(secured: Secured):
    words = bearer(secured.token("pat"))
    batch = [{"price": 1}, {"price": 2_000}]
    found: Answer = post(f"{secured.url}/notifications", batch, *words)
    assert (found.status, found.json["status"]) == (403, 403)
    assert "your role" in found.json["detail"]


def test_token_in_the_query_is_no_token(secured: Secured):
    token = secured.token("operator")
    assert curl(f"{secured.url}/overlay?token={token}").status == 401
    assert curl(f"{secured.url}/overlay?access_token={token}").status == 401
    assert token not in secured.log()


def test_post_that_the_role_forbids_is_the_only_one_that_is_refused(secured: Secured):
    headers = {"Authorization": f"Bearer {secured.token('pat')}"}
    connections = [secured.gateway.connection() for _ in range(32)]
    for turn in range(8):
        for n, each in enumerate(connections):
            body = json.dumps({"price": 5_000 if n == turn else n})
            each.request("POST", "/notifications", body, headers)
        answers = [each.getresponse() for each in connections]
        said = [each.read() for each in answers]
        assert [each.status for each in answers] == [
            403 if n == turn else 202 for n in range(len(connections))
        ]
        assert b"notification 1 of 1 is not what your role may publish" in said[turn]
    for each in connections:
        each.close()
