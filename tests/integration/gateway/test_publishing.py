"""Publishing over HTTP: JSON, arrays and lines, with curl."""

import base64

import pytest

from support.gateway import Gateway, curl, events, publish


def test_plain_json_reaches_an_event_stream(gateway: Gateway):
    with events(f"{gateway.url}/notifications", filter="test = 'plain'") as stream:
        gateway.settled()
        found = publish(gateway, b'{"test": "plain", "price": 84.5, "absent": null}')
        assert (found.status, found.json) == (202, {"accepted": 1})
        told = stream.next()
    assert told.data["attributes"] == {"test": "plain", "price": 84.5}
    assert told.id == f"{told.data['publisher']}/{told.data['sequence']}"


def test_array_with_payloads_is_published_in_its_order(gateway: Gateway):
    with events(f"{gateway.url}/notifications", filter="test = 'array'") as stream:
        gateway.settled()
        gateway.publish(
            *({"test": "array", "number": number} for number in range(3)),
            {"attributes": {"test": "array", "number": 3}, "payload": "aGVsbG8="},
        )
        found = [each.data for each in stream.take(4)]
    assert [each["attributes"]["number"] for each in found] == [0, 1, 2, 3]
    assert base64.b64decode(found[3]["payload"]) == b"hello"


def test_stream_of_lines_says_how_many_and_where_the_mistake_is(gateway: Gateway):
    lines = ("-H", "content-type: application/x-ndjson")
    good = b'{"test": "lines", "n": 1}\n' * 5_000
    assert publish(gateway, good, *lines).json == {"accepted": 5_000}
    found = publish(gateway, b'{"n": 1}\n\n{"n": [1]}\n{"n": 2}\n', *lines)
    assert found.status == 400
    assert found.headers["content-type"] == "application/problem+json"
    assert (found.json["line"], found.json["accepted"]) == (3, 1)
    assert "attribute 'n' is of type list" in found.json["detail"]


@pytest.mark.parametrize(
    ("data", "status", "words", "place"),
    [
        (b'{"a": nope}', 400, "this is not JSON", {"position": 7}),
        (b"[1]", 400, "a notification is a JSON object", {"index": 0}),
        (b'[{"a": 1}, {"": 1}]', 400, "1 to 255 characters", {"index": 1}),
        (b'{"a": 1e999}', 400, "out of range", {}),
        (b'{"a": 18446744073709551616}', 400, "64 bits", {}),
        (b'{"attributes": {"a": 1}, "payload": "%%"}', 400, "base64", {}),
        (b'{"attributes": {"a": 1}, "pay": ""}', 400, "pay", {}),
        (b"\xff\xfe", 400, "not JSON", {}),
        (b"", 400, "not JSON", {}),
        (b"[" * 100_000, 400, "", {}),
    ],
)
def test_mistake_in_a_body_is_told_with_its_place(
    gateway: Gateway, data: bytes, status: int, words: str, place: dict[str, int]
):
    found = publish(gateway, data)
    assert found.status == status
    assert words in found.json["detail"]
    assert place.items() <= found.json.items()


def test_other_content_is_refused(gateway: Gateway):
    assert publish(gateway, b"<a/>", "-H", "content-type: text/xml").status == 415
    assert curl(f"{gateway.url}/notifications", "-X", "DELETE").status == 405
    assert curl(f"{gateway.url}/nothing").status == 404
    assert curl(f"{gateway.url}/notifications?filter=price%20%3E").json["position"] == 8
    assert "no parameter 'fliter'" in curl(f"{gateway.url}/notifications?fliter=a").json["detail"]


def test_body_in_a_form_that_is_not_read_is_refused_and_not_taken_as_it_is(gateway: Gateway):
    words = ("-H", "content-type: application/octet-stream", "-H", "content-encoding: gzip")
    context = ("-H", "ce-specversion: 1.0", "-H", "ce-id: 1", "-H", "ce-source: /x")
    found = publish(gateway, b"\x1f\x8b\x08", *words, *context, "-H", "ce-type: t")
    assert (found.status, "gzip" in found.json["detail"]) == (415, True)
