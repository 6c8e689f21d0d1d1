"""Asks every broker of an overlay how it is, over the wire."""

from asyncio import Semaphore
from collections.abc import Iterable, Mapping
from typing import Any

from octopis.client.client import Client
from octopis.client.credentials import Given
from octopis.core.routing import Algorithm
from octopis.errors import OctopisError
from octopis.overlay.asking import CONNECT_S, ask_each

Statuses = dict[str, dict[str, Any]]


async def ask_all(
    addresses: Mapping[str, str],
    connect_s: float = CONNECT_S,
    credentials: Given = None,
    room: Semaphore | None = None,
) -> Statuses:
    """Return the status of each broker with its `address`; `error` where it cannot be reached."""
    found = await ask_each(
        addresses,
        Client.status,
        connect_s=connect_s,
        observer=True,
        credentials=credentials,
        room=room,
    )
    return {
        broker: {
            "address": addresses[broker],
            **({"error": str(answer)} if isinstance(answer, OctopisError) else answer),
        }
        for broker, answer in found.items()
    }


def totals(statuses: Statuses) -> dict[str, Any]:
    """Return the sums over all brokers that answered."""
    answered = [status for status in statuses.values() if "error" not in status]
    links = [link for status in answered for link in status["links"].values()]
    return {
        "brokers": len(statuses),
        "ready": sum(status["ready"] for status in answered),
        "unreachable": len(statuses) - len(answered),
        "clients": sum(len(status["clients"]) for status in answered),
        "subscriptions": sum(_own_subscriptions(status) for status in answered),
        "published": sum(status["published"] for status in answered),
        "counters": _summed(status["counters"] for status in answered),
        "cases": _summed(status["cases"] for status in answered),
        "drops": _summed(status["drops"] for status in answered),
        "links_up": sum(link["up"] for link in links),
        "links": len(links),
        "queued": sum(link["queue_length"] for link in links),
        "overloaded": sum(link["overloaded"] for link in links),
        "backpressure": sorted({each for status in answered for each in status["backpressure"]}),
        "delivery": _delivery(answered),
        "store": _store(answered),
        "dead": _dead(answered),
        "gone_around": _gone_around(answered),
    }


def _delivery(answered: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums over all channels, where there are any."""
    found = [status["delivery"] for status in answered if len(status.get("delivery", {})) > 1]
    if not found:
        return {}
    sums = _summed(
        {name: value for name, value in each.items() if isinstance(value, int)} for each in found
    )
    lists = {
        name: sorted({broker for each in found for broker in each[name]})
        for name in ("waits_for", "gone")
    }
    return {**sums, **lists}


def _store(answered: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums over all disks, where there are any, and those that take nothing more."""
    found = {each["broker"]: each for each in answered if "store" in each}
    if not found:
        return {}
    durables = [each for status in found.values() for each in status["durables"].values()]
    stores = {broker: status["store"] for broker, status in found.items()}
    return {
        "bytes": sum(each["bytes"] for each in stores.values()),
        "records": sum(each["records"] for each in stores.values()),
        "damages": sum(each["damages"] for each in stores.values()),
        "full": [broker for broker, each in stores.items() if each["state"] == "full"],
        "failed": [broker for broker, each in stores.items() if each["state"] == "failed"],
        "durables": len(durables),
        "lag": sum(each["lag"] for each in durables),
    }


def _dead(answered: list[dict[str, Any]]) -> list[str]:
    """Return the brokers to which none of their neighbours has a link that is up."""
    seen: dict[str, bool] = {}
    for status in answered:
        for neighbour, link in status["links"].items():
            seen[neighbour] = seen.get(neighbour, False) or link["up"]
    return [broker for broker, is_up in seen.items() if not is_up]


def _gone_around(answered: list[dict[str, Any]]) -> list[str]:
    """Return the links, by their direction, that target routing goes around now."""
    return [
        f"{status['broker']} > {neighbour}"
        for status in answered
        if status["algorithm"] == Algorithm.TNR.value
        for neighbour, link in status["links"].items()
        if link["overloaded"] or not link["up"]
    ]


def _own_subscriptions(status: dict[str, Any]) -> int:
    return sum(client["subscriptions"] for client in status["clients"].values())


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total
