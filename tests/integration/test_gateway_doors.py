"""Each door of a gateway, used by clients that nobody here wrote."""

import asyncio
import base64
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event, to_binary_event
from cloudevents.core.bindings.http import to_structured_event as to_structured
from cloudevents.core.v1.event import CloudEvent
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus_text
from websockets.asyncio.client import ClientConnection, connect

from support.gateway import Answer, Gateway, curl, events, post
from support.overlay_command import SMALL, Shell, wait_until


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway beside four brokers that have disks."""
    shell = Shell(tmp_path_factory.mktemp("gateway"))
    words = ("--config", shell.config(SMALL), "--durable", "kept", "--gateway-port", "0")
    with shell.up(*words) as up:
        yield Gateway(up.state["gateway"], up)
        assert up.stop() == (0, "")
    shell.end()


def publish(gateway: Gateway, data: bytes, *words: str) -> Answer:
    return curl(f"{gateway.url}/notifications", *words, data=data)


# Publishing


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


# CloudEvents

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


# Durable subscriptions


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


# WebSockets


class Socket:
    """A WebSocket, with the messages that have come."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._messages: list[dict[str, Any]] = []

    async def say(self, *messages: Any) -> None:
        await self._connection.send(json.dumps(messages[0] if len(messages) == 1 else messages))

    async def next(self, limit_s: float = 10.0) -> dict[str, Any]:
        while not self._messages:
            async with asyncio.timeout(limit_s):
                self._messages = json.loads(await self._connection.recv())
        return self._messages.pop(0)

    async def take(self, count: int) -> list[dict[str, Any]]:
        return [await self.next() for _ in range(count)]


def on_socket(gateway: Gateway, use: Any) -> None:
    async def run() -> None:
        async with connect(f"ws://{gateway.address}/ws") as connection:
            await use(Socket(connection))

    asyncio.run(run())


def numbered(count: int, **attributes: Any) -> list[dict[str, Any]]:
    return [{"type": "publish", "attributes": {**attributes, "n": n}} for n in range(count)]


def test_socket_has_many_filters_and_publishes_arrays(gateway: Gateway):
    async def use(socket: Socket) -> None:
        await socket.say(
            {"type": "subscribe", "id": "low", "filter": "test = 'socket' AND n < 2"},
            {"type": "subscribe", "id": "high", "filter": "test = 'socket' AND n >= 2"},
        )
        told = await socket.take(2)
        assert [(each["type"], each["id"]) for each in told] == [
            ("subscribed", "low"),
            ("subscribed", "high"),
        ]
        await asyncio.to_thread(gateway.settled)
        publications = numbered(4, test="socket")
        publications[-1] |= {"request": 7, "payload": "aGk="}
        await socket.say(*publications)
        found = await socket.take(5)
        (accepted,) = [each for each in found if each["type"] == "accepted"]
        assert (accepted["count"], accepted["requests"]) == (4, [7])
        got = {
            (each["id"], each["attributes"]["n"])
            for each in found
            if each["type"] == "notification"
        }
        assert got == {("low", 0), ("low", 1), ("high", 2), ("high", 3)}
        await socket.say({"type": "unsubscribe", "id": "low"})
        assert await socket.next() == {"type": "unsubscribed", "id": "low"}
        await asyncio.to_thread(gateway.settled)
        await socket.say(*numbered(3, test="socket"))
        assert (await socket.next())["id"] == "high"

    on_socket(gateway, use)


def test_credit_holds_back_what_a_socket_has_not_asked_for(gateway: Gateway):
    async def use(socket: Socket) -> None:
        await socket.say(
            {"type": "credit", "count": 2},
            {"type": "subscribe", "id": "s", "filter": "test = 'credit'"},
        )
        await socket.next()
        await asyncio.to_thread(gateway.settled)
        await socket.say(*numbered(5, test="credit"))
        assert [each["attributes"]["n"] for each in await socket.take(2)] == [0, 1]
        with pytest.raises(TimeoutError):
            await socket.next(0.3)
        await socket.say({"type": "credit", "count": 3})
        assert [each["attributes"]["n"] for each in await socket.take(3)] == [2, 3, 4]

    on_socket(gateway, use)


def test_socket_reads_and_acknowledges_a_durable_subscription(gateway: Gateway):
    subscribe = {"type": "subscribe", "id": "d", "durable": "socketed"}

    async def first(socket: Socket) -> None:
        await socket.say({**subscribe, "filter": "test = 'kept'"})
        assert (await socket.next())["durable"] == "socketed"
        await asyncio.to_thread(gateway.settled)
        await socket.say(*numbered(4, test="kept"))
        found = await socket.take(4)
        assert [each["position"] for each in found] == [1, 2, 3, 4]
        await socket.say({"type": "ack", "id": "d", "position": 2})
        address = f"{gateway.url}/durable/socketed"
        kept = [3, 4]
        for _ in range(100):
            pulled = (await asyncio.to_thread(curl, address)).json["notifications"]
            if [each["position"] for each in pulled] == kept:
                return
            await asyncio.sleep(0.05)
        pytest.fail("what was acknowledged is still there")

    async def second(socket: Socket) -> None:
        await socket.say(subscribe)
        await socket.next()
        assert [each["attributes"]["n"] for each in await socket.take(2)] == [2, 3]

    on_socket(gateway, first)
    on_socket(gateway, second)


def test_mistakes_on_a_socket_are_told_one_by_one_and_end_nothing(gateway: Gateway):
    async def use(socket: Socket) -> None:
        await socket._connection.send("{nonsense")
        assert (await socket.next())["type"] == "error"
        await socket.say(
            {"type": "subscribe", "id": "bad", "filter": "price >"},
            {"type": "jump"},
            {"type": "publish", "attributes": {"a": [1]}, "request": "r"},
            {"type": "unsubscribe", "id": "nobody"},
            {"type": "subscribe", "id": "none", "durable": "nowhere"},
            {"type": "subscribe", "id": "good", "filter": "a = 1"},
        )
        told = await socket.take(6)
        assert [each["type"] for each in told] == ["error"] * 5 + ["subscribed"]
        assert [each["index"] for each in told[:5]] == [0, 1, 2, 3, 4]
        assert (told[0]["request"], told[0]["position"]) == ("bad", 8)
        assert told[2]["request"] == "r"
        await socket.say({"type": "subscribe", "id": "good", "filter": "a = 2"})
        assert "already" in (await socket.next())["detail"]

    on_socket(gateway, use)


# Questions


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


# What describes the gateway


def test_description_is_openapi_and_names_what_there_is(gateway: Gateway):
    from openapi_spec_validator import validate  # noqa: PLC0415 - slow to load

    found = curl(f"{gateway.url}/openapi.json").json
    validate(found)
    assert found["openapi"].startswith("3.1")
    page = curl(f"{gateway.url}/docs").body
    for path, operations in found["paths"].items():
        assert path in page
        for method in operations:
            if path == "/ws":
                continue
            asked = curl(
                gateway.url + path.replace("{name}", "nobody"),
                "-X",
                method.upper(),
                "--max-time",
                "1",
                data=b"" if method == "post" else None,
            )
            assert asked.status not in {405, 500}, (method, path)
    assert "http://" not in page.replace(gateway.url, "")
    assert "https://" not in page


def test_page_and_its_picture_are_there_and_nothing_outside_the_folder(gateway: Gateway):
    page = curl(f"{gateway.url}/")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert curl(f"{gateway.url}/favicon.ico").headers["content-type"] == "image/svg+xml"
    assert curl(f"{gateway.url}/static/index.html").status == 200
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"):
        assert curl(f"{gateway.url}{path}", "--path-as-is").status == 404


def test_prometheus_reads_the_metrics(gateway: Gateway):
    gateway.publish({"test": "metrics"})
    plain = {each.name: each for each in prometheus_text(gateway.metrics())}
    accepted = {
        sample.labels["door"]: sample.value
        for sample in plain["octopis_gateway_published"].samples
        if sample.name.endswith("_total")
    }
    assert accepted["json"] >= 1
    asked = curl(f"{gateway.url}/metrics", "-H", "accept: application/openmetrics-text")
    assert asked.headers["content-type"].startswith("application/openmetrics-text")
    families = {each.name for each in open_metrics(asked.body)}
    assert {"octopis_gateway_publish_seconds", "octopis_gateway_streams"} <= families


def test_labels_do_not_grow_with_readers(gateway: Gateway):
    def series() -> int:
        return sum(not line.startswith("#") for line in gateway.metrics().splitlines())

    with events(f"{gateway.url}/notifications", filter="a = 0"):
        before = series()
        with events(f"{gateway.url}/notifications", filter="a = 1"):
            with events(f"{gateway.url}/notifications", filter="a = 2"):
                wait_until(lambda: "streams" in gateway.metrics())
                assert series() == before
