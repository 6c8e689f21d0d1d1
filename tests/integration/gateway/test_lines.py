"""Streams of lines of which the overlay refuses one: what `accepted` says is what was published."""

import json
import re
from typing import Any

from support.gateway import Answer, curl, events
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
