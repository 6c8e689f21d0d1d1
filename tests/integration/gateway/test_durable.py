"""Durable subscriptions over HTTP: resumed, pulled and acknowledged."""

import pytest

from octopis import connect_sync
from support.gateway import Gateway, curl, events, post


def test_last_event_id_goes_on_behind_what_was_got(gateway: Gateway):
    address = f"{gateway.url}/notifications"
    query = {"durable": "resumed", "filter": "test = 'resume'"}
    with events(address, **query) as stream:
        gateway.settled()
        gateway.publish(*({"test": "resume", "n": n} for n in range(5)))
        first = stream.take(3)
    with events(address, "-H", f"Last-Event-ID: {first[1].id}", durable="resumed") as stream:
        found = stream.take(3)
    assert [each.data["attributes"]["n"] for each in found] == [2, 3, 4]
    pulled = curl(f"{gateway.url}/durable/resumed").json
    assert [each["position"] for each in pulled["notifications"]] == [3, 4, 5]
    bad = curl(f"{address}?durable=resumed", "-H", "Last-Event-ID: 1-1")
    assert (bad.status, "made anew" in bad.json["detail"]) == (410, True)


def test_durable_subscription_is_pulled_and_acknowledged(gateway: Gateway):
    with events(f"{gateway.url}/notifications", durable="pulled", filter="test = 'pull'"):
        gateway.settled()
    gateway.publish(*({"test": "pull", "n": n} for n in range(4)))
    address = f"{gateway.url}/durable/pulled"
    found = curl(f"{address}?max=3&wait_ms=5000").json
    assert [each["attributes"]["n"] for each in found["notifications"]] == [0, 1, 2]
    assert curl(f"{address}?max=3").json["notifications"] == found["notifications"]
    ack = {"position": found["notifications"][-1]["position"], "epoch": found["epoch"]}
    assert post(f"{address}/ack", ack).json == {"name": "pulled", "position": 3}
    assert [each["attributes"]["n"] for each in curl(address).json["notifications"]] == [3]
    assert curl(f"{address}?after=4").json["notifications"] == []
    assert curl(f"{address}?after=1").status == 410
    assert curl(f"{address}?max=many").status == 400
    assert post(f"{address}/ack", {"position": 4, "epoch": "1"}).status == 410
    assert post(f"{address}/ack", {"position": 999}).status == 400
    assert curl(f"{gateway.url}/durable/nobody").status == 404


@pytest.mark.parametrize(
    ("header", "query"),
    [
        ("Last-Event-ID: ²-1", ""),
        (f"Last-Event-ID: 1-{'9' * 5_000}", ""),
        ("x: y", f"&start={'9' * 5_000}"),
        ("x: y", "&start=%C2%B2"),
    ],
)
def test_digits_that_are_no_number_are_a_mistake_of_who_sends_them(
    gateway: Gateway, header: str, query: str
):
    address = f"{gateway.url}/notifications?durable=digits&filter=a%3D1{query}"
    found = curl(address, "-H", header.encode("latin-1"))
    assert found.status == 400
    assert found.headers["content-type"] == "application/problem+json"


def test_durable_subscription_is_pulled_by_a_name_with_a_slash(gateway: Gateway):
    with events(f"{gateway.url}/notifications", durable="a/b", filter="test = 'slash'"):
        gateway.settled()
    gateway.publish({"test": "slash"})
    found = curl(f"{gateway.url}/durable/a%2Fb?wait_ms=5000").json
    assert (found["name"], len(found["notifications"])) == ("a/b", 1)
    assert post(f"{gateway.url}/durable/a/b/ack", {"position": 1}).json["position"] == 1


def test_durable_subscription_that_ended_elsewhere_is_not_there_and_is_made_anew(gateway: Gateway):
    address = f"{gateway.url}/durable/ended"
    query = {"durable": "ended", "filter": "test = 'ended'"}
    for round_ in range(2):
        with events(f"{gateway.url}/notifications", **query) as stream:
            gateway.settled()
            gateway.publish({"test": "ended", "n": round_})
            assert stream.next().data["attributes"]["n"] == round_
        assert curl(address).status == 200
        with connect_sync(gateway.up.url(home_of("ended", gateway))) as client:
            client.drop_durable("ended")
        if round_:
            found = curl(address)
            assert (found.status, "give a filter" in found.json["detail"]) == (404, True)


def home_of(name: str, gateway: Gateway) -> str:
    """Return the broker where a durable subscription lives."""
    found = gateway.up.statuses()
    (home,) = [broker for broker, each in found.items() if name in each["durables"]]
    return home
