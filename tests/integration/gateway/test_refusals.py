"""Many notifications of which the overlay refuses one: what was accepted is what is published."""

import asyncio
import json
import re
from typing import Any

from websockets.asyncio.client import connect

from support.gateway import Answer, curl, events, post
from support.gateway_socket import Socket
from support.secured import Secured, bearer

REFUSED = 3_000


def send(secured: Secured, lines: list[dict[str, Any]]) -> Answer:
    """Publish lines as one whose role may not publish a price of 1000."""
    body = "".join(json.dumps(each) + "\n" for each in lines).encode()
    words = ("-H", "content-type: application/x-ndjson", *bearer(secured.token("pat")))
    return curl(f"{secured.url}/notifications", *words, data=body)


def test_nothing_behind_a_refused_line_is_published_and_who_goes_on_there_loses_nothing(
    secured: Secured,
):
    lines = [{"stream": 1, "n": n, "price": 1.5} for n in range(10_000)]
    lines[REFUSED]["price"] = 1_000
    address = f"{secured.url}/notifications"
    with events(address, *bearer(secured.token("operator")), filter="stream = 1") as stream:
        secured.settled()
        found = send(secured, lines)
        assert (found.status, "your role may publish" in found.json["detail"]) == (403, True)
        accepted = found.json["accepted"]
        assert 0 < accepted <= REFUSED
        assert found.json["line"] == accepted + 1
        told = re.match(r"lines ([0-9,]+) to ([0-9,]+): ", found.json["detail"])
        assert told is not None
        first, last = (int(each.replace(",", "")) for each in told.groups())
        assert first == accepted + 1 <= REFUSED + 1 <= last < 10_000
        lines[REFUSED]["price"] = 999
        assert send(secured, lines[accepted:]).json == {"accepted": 10_000 - accepted}
        got = [each.data["attributes"]["n"] for each in stream.take(10_000)]
    assert got == [*range(10_000)], "each once, and in order"


def test_first_of_all_lines_is_refused_with_its_number_and_nothing_is_published(secured: Secured):
    found = send(secured, [{"price": 1_000}])
    assert (found.status, found.json["line"], found.json["accepted"]) == (403, 1, 0)
    assert found.json["detail"].startswith("notification 1")


def refused(mark: str) -> list[dict[str, Any]]:
    """Return notifications of which one may not be published."""
    found: list[dict[str, Any]] = [{mark: 1, "n": n, "price": 1.5} for n in range(4_000)]
    found[REFUSED]["price"] = 1_000
    return found


def test_array_says_how_many_were_accepted_before_the_refused_ones(secured: Secured):
    address = f"{secured.url}/notifications"
    with events(address, *bearer(secured.token("operator")), filter="array = 1") as stream:
        secured.settled()
        found = post(address, refused("array"), *bearer(secured.token("pat")))
        assert (found.status, "your role may publish" in found.json["detail"]) == (403, True)
        accepted = found.json["accepted"]
        assert 0 < accepted <= REFUSED
        assert found.json["detail"].startswith(f"notifications {accepted:,} to ")
        secured.publish({"array": 1, "n": -1, "price": 1})
        got = [each.data["attributes"]["n"] for each in stream.take(accepted + 1)]
    assert got == [*range(accepted), -1]


def test_socket_answers_each_request_by_what_became_of_it(secured: Secured):
    async def publish() -> tuple[list[int], list[int]]:
        answers: dict[str, list[int]] = {"accepted": [], "error": []}
        token = {"authorization": f"Bearer {secured.token('pat')}"}
        address = f"ws://{secured.gateway.address}/ws"
        async with connect(address, additional_headers=token) as connection:
            socket = Socket(connection)
            asked = enumerate(refused("socket"))
            await socket.say(
                *({"type": "publish", "attributes": each, "request": n} for n, each in asked)
            )
            while sum(map(len, answers.values())) < 4_000:
                said = await socket.next()
                answers[said["type"]] += said.get("requests") or [said["request"]]
        return answers["accepted"], answers["error"]

    address = f"{secured.url}/notifications"
    with events(address, *bearer(secured.token("operator")), filter="socket = 1") as stream:
        secured.settled()
        accepted, failed = asyncio.run(publish())
        secured.publish({"socket": 1, "n": -1, "price": 1})
        got = [each.data["attributes"]["n"] for each in stream.take(len(accepted) + 1)]
    assert REFUSED in failed
    assert accepted
    assert (got[:-1], got[-1]) == (accepted, -1)
