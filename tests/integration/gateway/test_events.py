"""What can be asked of server-sent events: several filters, dialects, where to begin, acks."""

from typing import Any

from support.gateway import Gateway, curl, events
from support.overlay_command import wait_until


def kept(gateway: Gateway, name: str) -> list[int]:
    """Return the positions of what nobody has acknowledged."""
    found = curl(f"{gateway.url}/durable/{name}").json["notifications"]
    return [each["position"] for each in found]


def test_several_filters_mean_any_of_them_and_what_matches_both_comes_once(gateway: Gateway):
    address = f"{gateway.url}/notifications?filter=any%20%3C%202&filter=any%20%3D%201"
    with events(f"{address}&filter=any%20%3E%203") as stream:
        gateway.settled()
        gateway.publish(*({"any": n} for n in range(6)))
        found = [each.data["attributes"]["any"] for each in stream.take(4)]
    assert found == [0, 1, 4, 5]


def test_filter_is_read_in_the_dialect_that_is_said(gateway: Gateway):
    address = f"{gateway.url}/notifications"
    with events(address, filter="[dialect,=,'padres'],[n,>,1]", dialect="padres") as stream:
        gateway.settled()
        gateway.publish(*({"dialect": "padres", "n": n} for n in range(3)))
        assert stream.next().data["attributes"]["n"] == 2
    found = curl(f"{address}?filter=n%20%3D%201&dialect=padres")
    assert (found.status, "position" in found.json) == (400, True)
    assert curl(f"{address}?filter=n%20%3D%201&dialect=latin").status == 400


def test_durable_stream_begins_where_it_is_told(gateway: Gateway):
    address = f"{gateway.url}/notifications"
    query = {"durable": "begun", "filter": "test = 'begun'"}
    with events(address, **query) as stream:
        gateway.settled()
        gateway.publish(*({"test": "begun", "n": n} for n in range(1, 5)))
        stream.take(4)
    for start, first in ("3", 3), ("earliest", 1):
        with events(address, durable="begun", start=start) as stream:
            assert stream.next().data["position"] == first
    with events(address, durable="begun", start="new") as stream:
        gateway.publish({"test": "begun", "n": 5})
        assert stream.next().data["attributes"]["n"] == 5
    found = curl(f"{address}?durable=begun&start=9")
    assert (found.status, "positions are from 1 to 5" in found.json["detail"]) == (400, True)
    found = curl(f"{address}?filter=n%20%3D%201&start=1")
    assert (found.status, "durable=NAME" in found.json["detail"]) == (400, True)


def test_acks_auto_acknowledges_what_was_sent_and_manual_nothing(gateway: Gateway):
    address = f"{gateway.url}/notifications"

    def follow(acks: str, **more: str) -> list[Any]:
        with events(address, durable=f"acks-{acks}", acks=acks, **more) as stream:
            gateway.settled()
            gateway.publish(*({"test": acks, "n": n} for n in range(3)))
            return stream.take(3)

    for acks in ("manual", "auto"):
        follow(acks, filter=f"test = '{acks}'")
    wait_until(lambda: kept(gateway, "acks-auto") == [])
    assert kept(gateway, "acks-manual") == [1, 2, 3]
    found = curl(f"{address}?durable=acks-auto&acks=perhaps")
    assert (found.status, "auto or manual" in found.json["detail"]) == (400, True)
