"""CloudEvents in and out, as their own SDK has them."""

import base64
import json
from datetime import datetime
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event, to_binary_event
from cloudevents.core.bindings.http import to_structured_event as to_structured
from cloudevents.core.v1.event import CloudEvent

from support.gateway import Answer, Gateway, events, publish

EVENT = CloudEvent(
    {
        "id": "17",
        "source": "/markets/nyse",
        "type": "quote",
        "specversion": "1.0",
        "subject": "IBM",
        "datacontenttype": "application/json",
        "time": datetime.fromisoformat("2026-01-02T03:04:05+00:00"),
        "region": "ünïted states",
    },
    {"test": "cloudevents", "price": 84.5, "deep": {"bid": 84.0}, "id": 5},
)


def send_event(gateway: Gateway, message: HTTPMessage) -> Answer:
    headers = [word for each in message.headers.items() for word in ("-H", ": ".join(each))]
    return publish(gateway, bytes(message.body), *headers)


@pytest.mark.parametrize("encode", [to_binary_event, to_structured])
def test_event_of_the_sdk_becomes_attributes_and_payload(gateway: Gateway, encode: Any):
    with events(f"{gateway.url}/notifications", filter="test = 'cloudevents'") as stream:
        gateway.settled()
        assert send_event(gateway, encode(EVENT)).json == {"accepted": 1}
        found = stream.next().data
    attributes = found["attributes"]
    assert attributes["price"] == 84.5
    assert attributes["id"] == "17", "the context counts"
    assert attributes["source"] == "/markets/nyse"
    assert attributes["region"] == "ünïted states"
    assert attributes["subject"] == "IBM"
    assert attributes["time"].startswith("2026-01-02T03:04:05")
    assert "specversion" not in attributes
    assert "deep" not in attributes
    assert json.loads(base64.b64decode(found["payload"])) == EVENT.get_data()


def test_batch_and_bytes_are_taken_and_come_out_as_events_that_the_sdk_reads(gateway: Gateway):
    one = {"specversion": "1.0", "source": "/x", "type": "raw", "test": "batch"}
    batch = [
        {**one, "id": "1", "data_base64": "AAEC", "datacontenttype": "application/octet-stream"},
        {**one, "id": "2", "data": "text", "datacontenttype": "text/plain"},
        {**one, "id": "3"},
    ]
    query = {"filter": "test = 'batch'", "format": "cloudevents"}
    content = ("-H", "content-type: application/cloudevents-batch+json")
    with events(f"{gateway.url}/notifications", **query) as stream:
        gateway.settled()
        assert publish(gateway, json.dumps(batch).encode(), *content).json == {"accepted": 3}
        found = [each.data for each in stream.take(3)]
    headers = {"content-type": "application/cloudevents+json"}
    read = [
        from_structured_event(HTTPMessage(headers, json.dumps(each).encode())) for each in found
    ]
    data: list[Any] = [each.get_data() for each in read]
    assert [each["attributes"]["id"] for each in data] == ["1", "2", "3"]
    assert [base64.b64decode(each.get("payload", "")) for each in data] == [b"\0\1\2", b"text", b""]
    assert {each.get_type() for each in read} == {"octopis.notification"}
    with events(f"{gateway.url}/notifications", filter="test = 'batch'") as stream:
        gateway.settled()
        assert send_event(gateway, to_structured(read[0])).status == 202
        again = stream.next().data
    assert again["attributes"] == data[0]["attributes"], "it becomes what it was"
    assert again["payload"] == data[0]["payload"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"id": ""}, "id"),
        ({"type": None}, "type"),
        ({"ext": {"deep": 1}}, "ext"),
        ({"data_base64": "!"}, "base64"),
        ({"data_base64": "AA==", "data": 1}, "not both"),
    ],
)
def test_event_that_breaks_the_rules_is_refused(
    gateway: Gateway, change: dict[str, Any], words: str
):
    event = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t", **change}
    content = ("-H", "content-type: application/cloudevents+json")
    found = publish(gateway, json.dumps(event).encode(), *content)
    assert found.status == 400
    assert words in found.json["detail"]
    binary = ("-H", "ce-specversion: 1.0", "-H", "ce-source: /x", "-H", "ce-type: t")
    assert "ce-id" in publish(gateway, b"{}", *binary).json["detail"]


NAMED = b'"specversion": "1.0", "id": "1", "source": "/x", "type": "t"'


@pytest.mark.parametrize(
    "member", [b'"data": {"a": 1e400}', b'"data": {"a": %b}' % (b"9" * 5_000), b'"ext": 1e400']
)
def test_number_out_of_range_is_a_mistake_of_who_sends_it(gateway: Gateway, member: bytes):
    event = b"{%b, %b}" % (NAMED, member)
    content = ("-H", "content-type: application/cloudevents+json")
    found = publish(gateway, event, *content)
    assert (found.status, "out of range" in found.json["detail"]) == (400, True)
    batch = ("-H", "content-type: application/cloudevents-batch+json")
    found = publish(gateway, b"[{%b}, %b]" % (NAMED, event), *batch)
    assert (found.status, found.json["index"]) == (400, 1)


def binary(**extensions: str) -> tuple[str, ...]:
    """Return the headers of an event in binary form."""
    context = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t", **extensions}
    return tuple(word for name, value in context.items() for word in ("-H", f"ce-{name}: {value}"))


def test_headers_are_read_as_the_http_binding_says(gateway: Gateway):
    meant = {
        '"two words"': "two words",
        r'"say \"hi\" \\ %41"': r'say "hi" \ A',
        '""': "",
        "plain%20%E2%82%AC": "plain €",
        "€ as it is": "€ as it is",
        'in "the" middle': 'in "the" middle',
        "100%": "100%",
    }
    extensions = {f"ext{number}": value for number, value in enumerate(meant)}
    with events(f"{gateway.url}/notifications", filter="test = 'header'") as stream:
        gateway.settled()
        assert publish(gateway, b"{}", *binary(test="header", **extensions)).status == 202
        found = stream.next().data["attributes"]
    assert [found[name] for name in extensions] == list(meant.values())


@pytest.mark.parametrize("value", ["caf%E9", "%ff", '"open', r'"open\"', '"two" "three"'])
def test_header_that_is_no_utf_8_or_badly_quoted_is_refused(gateway: Gateway, value: str):
    found = publish(gateway, b"{}", *binary(ext=value))
    assert (found.status, "ce-ext" in found.json["detail"]) == (400, True)
