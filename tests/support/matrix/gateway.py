"""The paths through a gateway: HTTP, server-sent events and WebSocket, by bearer tokens."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from octopis.errors import InvalidSubscription, NotPermitted
from support.matrix.ground import Ground, Person
from support.matrix.path import WIDE, Path, Probe, on_anothers, own_durable, publishing, taken
from support.matrix.refusals import may

LIMIT_S = 30.0
_NOT_FOUND = 404


def check(status: int, detail: str) -> None:
    """Raise what an answer refuses; any other failure is one of the test."""
    if status in {401, 403}:
        raise NotPermitted(detail)
    if status == _NOT_FOUND or detail.startswith("there is no durable subscription"):
        raise InvalidSubscription(detail, "?")
    assert status in {200, 202}, f"{status}: {detail}"


@contextmanager
def answered(
    ground: Ground, person: Person, place: str, value: object = None
) -> Iterator[HTTPResponse]:
    """Ask a gateway, and read its answer meanwhile. Raises what it refuses."""
    url = urlsplit(ground.gateway(person))
    assert url.hostname
    token = ground.token(person)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    with closing(HTTPConnection(url.hostname, url.port, timeout=LIMIT_S)) as connection:
        if value is None:
            connection.request("GET", place, headers=headers)
        else:
            headers["content-type"] = "application/json"
            connection.request("POST", place, json.dumps(value), headers)
        with connection.getresponse() as answer:
            check(answer.status, "" if answer.status < 400 else json.load(answer)["detail"])
            yield answer


def ask(ground: Ground, person: Person, place: str, value: object = None) -> None:
    """Ask a gateway, and raise what it refuses."""
    with answered(ground, person, place, value):
        pass


def followed(ground: Ground, person: Person, query: str) -> set[str]:
    """Have the samples published, and return which come as server-sent events."""
    with answered(ground, person, f"/notifications?{query}") as answer:
        return seen_of(ground, notifications_in(answer))


def notifications_in(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in answer:
        name, _, value = line.decode().partition(": ")
        if name == "data" and "attributes" in (found := json.loads(value)):
            yield found["attributes"]


def seen_of(ground: Ground, stream: Iterator[dict[str, Any]]) -> set[str]:
    """Have the samples published, and return which come."""
    ground.settled()
    cell, seen = ground.cell(), set[str]()
    ground.publish_samples(cell)
    assert any(taken(each, cell, seen) for each in stream), "the stream has ended"
    return seen


class Http(Path):
    """`POST` and `GET /notifications`, and how the overlay is."""

    def probes(self) -> Mapping[str, Probe]:
        return {
            **publishing(lambda ground, who, said: ask(ground, who, "/notifications", said)),
            "see the status": lambda ground, who: may(lambda: ask(ground, who, "/overlay/status")),
        }

    def look(self, ground: Ground, person: Person) -> set[str]:
        return followed(ground, person, urlencode([("filter", each) for each in WIDE]))


class HttpDurable(Path):
    """Durable subscriptions, as streams of events and by pulling."""

    is_lasting = True

    def probes(self) -> Mapping[str, Probe]:
        acts: dict[str, Callable[[Ground, Person, str], object]] = {
            "open": lambda ground, who, name: ask(
                ground, who, f"/notifications?durable={quote(name, safe='')}"
            ),
            "read": lambda ground, who, name: ask(ground, who, f"{_place_of(name)}?wait_ms=9000"),
            "acknowledge": lambda ground, who, name: ask(
                ground, who, f"{_place_of(name)}/ack", {"position": 1}
            ),
        }
        found: dict[str, Probe] = {}
        for verb, act in acts.items():
            found[f"{verb} own"] = _on_own(act)
            found[f"{verb} another's"] = on_anothers(act)
        return found

    def look(self, ground: Ground, person: Person) -> set[str]:
        wide = " OR ".join(f"({each})" for each in WIDE)
        query = urlencode({"durable": f"look-{ground.cell()}", "filter": wide})
        return followed(ground, person, query)


def _place_of(name: str) -> str:
    return f"/durable/{quote(name, safe='')}"


def _on_own(act: Callable[[Ground, Person, str], object]) -> Probe:
    return lambda ground, who: may(lambda: act(ground, who, own_durable(ground, who)))


class WebSocket(Path):
    """`/ws`: who somebody is stands in the first message, as browsers say it."""

    def probes(self) -> Mapping[str, Probe]:
        def publish(ground: Ground, person: Person, attributes: dict[str, Any]) -> None:
            asked = {"type": "publish", "attributes": attributes, "request": 1}
            with opened(ground, person) as socket:
                say(socket, asked)
                assert next(heard(socket))["type"] == "accepted"

        return publishing(publish)

    def look(self, ground: Ground, person: Person) -> set[str]:
        asked = [
            {"type": "subscribe", "id": str(number), "filter": each}
            for number, each in enumerate(WIDE)
        ]
        with opened(ground, person) as socket:
            say(socket, asked)
            messages = heard(socket)
            begun = (each for each in messages if each["type"] == "subscribed")
            for _ in WIDE:  # what others publish comes in between
                next(begun)
            news = (each["attributes"] for each in messages if each["type"] == "notification")
            return seen_of(ground, news)


@contextmanager
def opened(ground: Ground, person: Person) -> Iterator[ClientConnection]:
    """Have a socket whose owner has said who it is, if anybody."""
    place = f"{ground.gateway(person).replace('http', 'ws', 1)}/ws"
    token = ground.token(person)
    with connect(place, open_timeout=LIMIT_S) as socket:
        socket.send(json.dumps({"token": token} if token is not None else {"type": "hello"}))
        yield socket


def say(socket: ClientConnection, message: object) -> None:
    """Say something; who was sent away already hears why from `heard`."""
    with suppress(ConnectionClosed):
        socket.send(json.dumps(message))


def heard(socket: ClientConnection) -> Iterator[dict[str, Any]]:
    """Return what comes over a socket, message by message. Raises what is refused."""
    while True:
        for each in json.loads(socket.recv(LIMIT_S)):
            if each["type"] == "error":
                check(each.get("status", 400), each["detail"])
            yield each
