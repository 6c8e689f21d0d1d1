"""A request's `traceparent` goes on with what it publishes."""

import json

import pytest

from support.gateway import Gateway, events, publish


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_header_traceparent_is_an_attribute_of_what_has_none(gateway: Gateway, kind: str):
    asked, own = (f"00-{each * 32}-{each * 16}-01" for each in "ab")
    words = ("-H", f"content-type: {kind}", "-H")
    with events(f"{gateway.url}/notifications", filter="test = 'traced'") as stream:
        gateway.settled()
        publish(gateway, b'{"test": "traced"}', *words, f"traceparent: {asked}")
        data = f'{{"test": "traced", "traceparent": "{own}"}}'.encode()
        publish(gateway, data, *words, f"traceparent: {asked}")
        full = {"test": "traced"} | {f"a{number}": number for number in range(63)}
        found = publish(gateway, json.dumps(full).encode(), *words, f"traceparent: {asked}")
        assert found.status == 202
        found = publish(gateway, b'{"test": "traced"}', *words, "traceparent: 00-nonsense")
        assert found.status == 202
        told = [each.data["attributes"].get("traceparent") for each in stream.take(4)]
    assert told == [asked, own, None, None]


def test_extension_traceparent_of_a_cloud_event_counts_before_the_header(gateway: Gateway):
    asked, own = (f"00-{each * 32}-{each * 16}-01" for each in "ab")
    binary = [
        word
        for name, value in {
            "ce-specversion": "1.0",
            "ce-id": "1",
            "ce-source": "/x",
            "ce-type": "traced",
            "content-type": "application/json",
            "traceparent": asked,
        }.items()
        for word in ("-H", f"{name}: {value}")
    ]
    with events(f"{gateway.url}/notifications", filter="type = 'traced'") as stream:
        gateway.settled()
        publish(gateway, b"{}", *binary)
        publish(gateway, b"{}", *binary, "-H", f"ce-traceparent: {own}")
        told = [each.data["attributes"]["traceparent"] for each in stream.take(2)]
    assert told == [asked, own]
