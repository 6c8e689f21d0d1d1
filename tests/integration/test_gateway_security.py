"""A gateway of an overlay with security: each role at each door."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from octopis import connect_sync
from octopis.core.model import BrokerId
from octopis.overlay.settings import parse_overlay
from support.gateway import Answer, Gateway, curl, events, gateway_run, post
from support.overlay_command import SMALL, Shell
from support.secure import Folder

HERE = BrokerId("a", 0)
ANYWHERE = "0.0.0.0"  # noqa: S104 - what is refused, or has TLS

ACCESS = """
[roles.all]
publish = "TRUE"
subscribe = "TRUE"
durable = true
status = true
[roles.publisher]
publish = "price < 1000"
[roles.reader]
subscribe = "price < 100"
[roles.keeper]
subscribe = "TRUE"
durable = true
[roles.watcher]
status = true
"""
USERS = {"operator": "all", "pat": "publisher", "rita": "reader", "kim": "keeper", "wim": "watcher"}


class Secured(NamedTuple):
    """A gateway, and the folder of its overlay."""

    gateway: Gateway
    folder: Folder
    shell: Shell

    @property
    def url(self) -> str:
        return self.gateway.url

    def token(self, user: str, lifetime_s: float = 600.0) -> str:
        return self.folder.token(user, lifetime_s)

    def settled(self) -> None:
        with connect_sync(
            self.gateway.up.url("a,0"), credentials=self.folder.files.credentials("operator")
        ) as client:
            client.settled()

    def publish(self, *notifications: dict[str, Any]) -> None:
        found = post(f"{self.url}/notifications", list(notifications), *bearer(self.token("pat")))
        assert found.status == 202, found.body

    def log(self) -> str:
        return next(self.shell.state.rglob("gateway.log")).read_text(encoding="utf-8")


def bearer(token: str | None) -> tuple[str, ...]:
    return () if token is None else ("-H", f"authorization: Bearer {token}")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Four brokers with disks and security, and the gateway that comes with them."""
    path = tmp_path_factory.mktemp("secured")
    shell = Shell(path)
    folder = Folder(path / "sec", parse_overlay(SMALL, "here").configuration.scot)
    users = (f'[users.{user}]\nroles = ["{role}"]\n' for user, role in USERS.items())
    folder.say(ACCESS + "".join(users))
    words = ("--config", shell.config(), "--secure", "sec", "--durable", "kept")
    with shell.up(*words, "--gateway-port", "0") as up:
        yield Secured(Gateway(up.state["gateway"], up), folder, shell)
        assert up.stop()[0] == 0
    shell.end()


# Who may do what


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


# What comes is what the role may see


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


# What ends


def test_streams_end_with_their_token_and_say_so(secured: Secured):
    token = secured.token("operator", 3.0)
    words = bearer(token)
    with (
        events(f"{secured.url}/notifications", *words, filter="price > 0") as stream,
        events(f"{secured.url}/overlay/live", *words) as live,
    ):
        began = time.monotonic()
        for each in (stream, live):
            last = each.rest()
            assert "event: end\ndata: " in last
            assert "the token has expired" in last
        assert time.monotonic() - began < 6.0
    found = curl(f"{secured.url}/overlay", *words)
    assert (found.status, "expired" in found.json["detail"]) == (401, True)


def test_stream_of_lines_ends_with_its_token_and_says_what_was_accepted(secured: Secured):
    connection = secured.gateway.connection()
    connection.putrequest("POST", "/notifications")
    connection.putheader("content-type", "application/x-ndjson")
    connection.putheader("authorization", f"Bearer {secured.token('pat', 2.0)}")
    connection.putheader("transfer-encoding", "chunked")
    connection.endheaders()
    line = b'{"price": 1}\n'
    chunk = b"%x\r\n%b\r\n" % (len(line), line)
    connection.send(chunk)
    time.sleep(3.2)
    connection.send(chunk + b"0\r\n\r\n")
    with closing(connection), connection.getresponse() as answer:
        assert answer.status == 401
        found = json.loads(answer.read())
    assert found["accepted"] == 1
    assert "expired" in found["detail"]


def test_streams_end_when_the_user_is_revoked_and_others_go_on(secured: Secured):
    before = secured.folder.files.access.read_text()
    kim, rita = bearer(secured.token("kim")), bearer(secured.token("rita"))
    url = f"{secured.url}/notifications"
    try:
        with events(url, *kim, filter="price > 2") as gone, events(url, *rita, filter="TRUE") as on:
            secured.folder.say(f'{before}\n[revoked]\nusers = ["kim"]\n')
            assert "event: end\n" in gone.rest()
            assert curl(f"{secured.url}/durable/x", *kim).status == 401
            secured.settled()
            secured.publish({"price": 7})
            assert on.next().data["attributes"] == {"price": 7}
    finally:
        secured.folder.say(before)


def test_live_stream_ends_when_the_role_loses_the_status(secured: Secured):
    before = secured.folder.files.access.read_text()
    words = bearer(secured.token("wim"))
    try:
        with events(f"{secured.url}/overlay/live", *words) as live:
            assert live.next().data["brokers"]["a,0"]["up"]
            told = before.replace(
                '[users.wim]\nroles = ["watcher"]', '[users.wim]\nroles = ["reader"]'
            )
            secured.folder.say(told)
            assert "event: end\n" in live.rest()
    finally:
        secured.folder.say(before)


def test_one_connection_for_each_token_however_many_requests(secured: Secured):
    def clients() -> int:
        found = curl(f"{secured.url}/overlay/status", *bearer(secured.token("wim"))).json
        return sum(
            name.startswith("pat/")
            for each in found["brokers"].values()
            for name in each["clients"]
        )

    before, words = clients(), bearer(secured.token("pat"))
    for _ in range(5):
        assert post(f"{secured.url}/notifications", [{"price": 1}], *words).status == 202
    assert clients() == before + 1


# Where it listens


def test_gateway_beyond_the_loopback_needs_tls_and_security_or_says_that_it_does_without(
    secured: Secured, tmp_path: Path
):
    shell, files = secured.shell, secured.folder.files
    refused = shell.run("gateway", "run", "--host", ANYWHERE, "--port", "0")
    assert refused.returncode == 2
    assert "--certificate" in refused.stderr
    assert "--insecure" in refused.stderr
    broker = ("--certificate", str(files.certificate(HERE)), "--key")
    refused = shell.run("gateway", "run", "--port", "0", *broker, str(tmp_path / "none"))
    assert refused.returncode == 2
    tls = (*broker, str(files.key(HERE)))
    with gateway_run(
        shell, secured.gateway.up, "--host", ANYWHERE, *tls, "--limit", "members=1"
    ) as gateway:
        url = f"https://localhost:{gateway.url.rpartition(':')[2]}"
        trust = ("--cacert", str(files.ca))
        assert curl(f"{url}/overlay", *trust).status == 401
        assert curl(f"{url}/metrics", *trust).status == 401
        token = bearer(secured.token("operator"))
        assert curl(f"{url}/overlay", *trust, *token).json["security"] is True
        assert curl(f"{url}/metrics", *trust, *token).status == 200
        other = bearer(secured.token("kim"))  # the first one makes room, unless it is in use
        with events(f"{url}/notifications", *trust, *other, filter="price > 3"):
            refused_now = curl(f"{url}/overlay", *trust, *token)
            assert (refused_now.status, "in use" in refused_now.json["detail"]) == (503, True)
        assert post(f"{url}/notifications", {"price": 1}, *trust, *token).status == 202
