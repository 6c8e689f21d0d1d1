"""What the page shows of an overlay, twice a second: made of what brokers said last.

Rates are the differences of two answers of one broker.
"""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from octopis.gateway.live.asking import Watched

EventKind = Literal[
    "link_down",
    "link_up",
    "overload",
    "relief",
    "broker_down",
    "broker_up",
    "restart",
    "slow_client",
    "drop",
]


class LiveBroker(Struct, frozen=True):
    """How a broker is. Rates are per second."""

    up: bool
    clients: int = 0
    subscriptions: int = 0
    published_s: float = 0.0
    delivered_s: float = 0.0
    queued: int = 0
    slow_clients: int = 0


class LiveLink(Struct, frozen=True):
    """How one direction of a link is, as the broker sees it that sends."""

    up: bool
    rate_s: float = 0.0
    queue: int = 0
    queue_bytes: int = 0
    q_in: int = 0
    q_out: int = 0
    element: float = 0.0
    overloaded: bool = False
    around_overload_s: float = 0.0
    around_fault_s: float = 0.0


class LiveDurable(Struct, frozen=True):
    """How a durable subscription is; `lag` is what nobody has acknowledged."""

    name: str
    broker: str
    lag: int
    position: int
    acknowledged: int
    bytes: int
    suspended: bool


class SlowClient(Struct, frozen=True):
    """A client behind by `client_queues.high_water`, or that has just lost deliveries."""

    client: str
    broker: str
    queue: int
    dropped: int


class LiveEvent(Struct, frozen=True):
    """Something that has happened."""

    at_ms: int
    kind: EventKind
    text: str


class Pulse(Struct, frozen=True):
    """How an overlay is. `links` are by direction, as in "a,0>b,0"."""

    at_ms: int
    brokers: dict[str, LiveBroker]
    links: dict[str, LiveLink]
    durables: list[LiveDurable]
    slow: list[SlowClient]
    events: list[LiveEvent] = []
    """New since the last pulse; the first one has the last 100."""


def pulse_of(at_ms: int, watched: Iterable[Watched], neighbours: dict[str, list[str]]) -> Pulse:
    """Return a pulse without events. `neighbours` are by broker; those of the dead are down."""
    found = Pulse(at_ms, {}, {}, [], [])
    for each in watched:
        status = each.status
        found.brokers[each.name] = _broker(each)
        if status is None:
            for other in neighbours.get(each.name, ()):
                found.links[f"{each.name}>{other}"] = LiveLink(up=False)
            continue
        for other, link in status["links"].items():
            found.links[f"{each.name}>{other}"] = _link(each, other, link)
        found.durables.extend(
            LiveDurable(
                name,
                each.name,
                durable["lag"],
                durable["position"],
                durable["acknowledged"],
                durable["bytes"],
                durable["suspended"],
            )
            for name, durable in status.get("durables", {}).items()
        )
        found.slow.extend(
            SlowClient(client, each.name, about["queue_length"], about["dropped"])
            for client, about in slow_clients(each.before, status).items()
        )
    return found


def slow_clients(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the clients of a broker that are slow now, by two answers of it.

    They are those that `octopis_slow_clients` counts, and those that lost something between.
    """
    known = {} if before is None else before["clients"]
    return {
        client: about
        for client, about in now["clients"].items()
        if about["backpressure"] or about["dropped"] > known.get(client, about)["dropped"]
    }


def _broker(each: Watched) -> LiveBroker:
    status = each.status
    if status is None:
        return LiveBroker(up=False)
    clients = status["clients"].values()
    return LiveBroker(
        up=True,
        clients=len(clients),
        subscriptions=sum(client["subscriptions"] for client in clients),
        published_s=_rate(each, "published"),
        delivered_s=_rate(each, "counters", "deliveries"),
        queued=sum(link["queue_length"] for link in status["links"].values())
        + sum(client["queue_length"] for client in clients),
        slow_clients=len(slow_clients(each.before, status)),
    )


def _link(each: Watched, other: str, link: dict[str, Any]) -> LiveLink:
    place = "links", other
    return LiveLink(
        up=link["up"],
        rate_s=_rate(each, *place, "sent"),
        queue=link["queue_length"],
        queue_bytes=link["queue_bytes"],
        q_in=link["q_in"],
        q_out=link["q_out"],
        element=link["congestion_element"],
        overloaded=link["overloaded"],
        around_overload_s=_rate(each, *place, "around_overload"),
        around_fault_s=_rate(each, *place, "around_fault"),
    )


def _rate(each: Watched, *place: str) -> float:
    """Return by how much a number has risen in a second, between the last two answers."""
    if each.before is None or each.status is None or each.at <= each.before_at:
        return 0.0
    now, before = (_number(status, place) for status in (each.status, each.before))
    return round(max(0.0, now - before) / (each.at - each.before_at), 3)


def _number(status: dict[str, Any], place: tuple[str, ...]) -> float:
    found: Any = status
    for name in place:
        found = found.get(name, 0) if isinstance(found, dict) else 0
    return float(found)
