"""What a gateway answers about filters, ways and the overlay."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from support.gateway import Gateway, curl, events, post


def test_filters_are_checked_and_explained(gateway: Gateway):
    found = post(f"{gateway.url}/filters/check", {"filter": 'b = "x" and a > 1'})
    assert found.json["filter"] == "a > 1 AND b = x"
    assert found.json["names"] == ["a", "b", "x"]
    assert found.json["warnings"]
    bad = post(f"{gateway.url}/filters/check", {"filter": "price >> 5"})
    assert (bad.status, bad.json["position"]) == (400, 8)
    question = {"filter": "a > 1 AND b = 'x'", "attributes": {"a": 2}}
    why = post(f"{gateway.url}/filters/explain", question).json
    assert why["truth"] == "unknown"
    assert [(each["truth"], each["depth"]) for each in why["lines"]] == [
        ("unknown", 0),
        ("true", 1),
        ("unknown", 1),
    ]
    assert post(f"{gateway.url}/filters/check", {"fliter": "a"}).status == 400


def test_ways_are_explained_under_each_algorithm(gateway: Gateway):
    question = {
        "publish": "b,2",
        "attributes": {"price": 12},
        "subscribers": [{"name": "S1", "broker": "c,0", "filter": "price > 10"}],
        "overloaded": [["b,2", "b,0"]],
        "topology": "figure-7",
    }
    found = post(f"{gateway.url}/routes/explain", question).json["algorithms"]
    assert list(found) == ["bid", "snr", "dnr", "tnr"]
    for name, answer in found.items():
        assert answer["messages"] == len(answer["hops"]) > 0
        assert [each["subscriber"] for each in answer["deliveries"]] == ["S1"], name
        assert answer["lost"] == []
        assert set(answer["hops"][0]) == {"from", "to", "reason", "words", "carries"}
    own = {"publish": "a,0", "subscribers": [{"name": "S", "broker": "b,1"}], "dead": ["b,1"]}
    lost = post(f"{gateway.url}/routes/explain", {**own, "algorithms": ["tnr"]}).json["algorithms"]
    assert lost["tnr"]["lost"] == ["S"]
    assert post(f"{gateway.url}/routes/explain", {"publish": "z,0"}).status == 400


def test_question_about_ways_is_bounded_and_says_each_algorithm_once(gateway: Gateway):
    own = {"publish": "a,0", "subscribers": [{"name": "S", "broker": "b,1"}]}
    twice = post(f"{gateway.url}/routes/explain", {**own, "algorithms": ["tnr", "tnr"]})
    assert list(twice.json["algorithms"]) == ["tnr"]
    for name, value in (
        ("algorithms", ["tnr"] * 1_000),
        ("dead", ["b,1"] * 1_001),
        ("cut", [["a,0", "b,0"]] * 10_001),
        ("overloaded", [["a,0", "b,0"]] * 10_001),
        ("subscribers", [{"name": f"S{n}", "broker": "b,1"} for n in range(201)]),
    ):
        found = post(f"{gateway.url}/routes/explain", {**own, name: value})
        assert (found.status, f"$.{name}" in found.json["detail"]) == (400, True)


def test_gateway_serves_others_while_ways_are_explained(gateway: Gateway):
    def explained() -> int:
        brokers = [f"{region},{cluster}" for region in ("i", "v", "x") for cluster in range(5)]
        question = {
            "publish": "i,0",
            "subscribers": [
                {"name": f"S{n}", "broker": brokers[n % len(brokers)]} for n in range(200)
            ],
            "topology": "paper",
        }
        return post(f"{gateway.url}/routes/explain", question).status

    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(explained) for _ in range(2)]
        for _ in range(5):
            gateway.publish({"test": "meanwhile"})
        assert not all(each.done() for each in asked)
        assert [each.result() for each in asked] == [200] * 2


def test_overlay_is_described_and_asked(gateway: Gateway):
    plan = curl(f"{gateway.url}/overlay").json
    assert plan["name"] == gateway.up.state["name"]
    assert {each["name"]: each["address"] for each in plan["brokers"]} == gateway.up.addresses
    assert len(plan["links"]) == 4
    assert (plan["tree"], plan["clusters"]) == ([["a", "b"]], [0, 1])
    assert (plan["algorithm"], plan["durable"], plan["security"]) == ("tnr", True, False)
    status = curl(f"{gateway.url}/overlay/status").json
    assert status["total"]["ready"] == 4
    assert curl(f"{gateway.url}/overlay/brokers/b,1").json["broker"] == "b,1"
    assert curl(f"{gateway.url}/overlay/brokers/z,1").status == 404


def test_pulse_comes_at_once_and_rates_follow(gateway: Gateway):
    with events(f"{gateway.url}/overlay/live") as live:
        first = live.next()
        assert first.kind == "pulse"
        assert set(first.data["brokers"]) == set(gateway.up.addresses)
        assert set(first.data["links"]) >= {"a,0>b,0", "b,0>a,0"}
        with events(f"{gateway.url}/notifications", filter="test = 'live'"):
            gateway.settled()
            gateway.publish(*({"test": "live"} for _ in range(100)))
            rates = [_published(live.next().data) for _ in range(4)]
    assert max(rates) > 10


def _published(pulse: dict[str, Any]) -> float:
    return sum(float(each["published_s"]) for each in pulse["brokers"].values())
