"""How a live broker is, as JSON-able values: what `octopis overlay status` shows."""

import time
from dataclasses import asdict
from typing import Protocol

from octopis.broker.backpressure import Congestion
from octopis.broker.intake import Intake
from octopis.broker.link import NeighbourLink
from octopis.broker.session import ClientSession
from octopis.broker.settings import OverlayConfiguration
from octopis.core.model import BrokerId
from octopis.core.routing import Broker


class Watched(Protocol):
    """What the status is read from."""

    id: BrokerId
    overlay: OverlayConfiguration
    core: Broker
    links: dict[BrokerId, NeighbourLink]
    clients: dict[str, ClientSession]
    congestion: Congestion
    intake: Intake
    published: int
    undelivered: int
    client_drops: int
    started_at: float

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""


def status_of(broker: Watched) -> dict[str, object]:
    """Return everything that there is to see of a broker."""
    counters = asdict(broker.core.counters)
    cases = counters.pop("cases")
    sessions = broker.clients.values()
    return {
        "broker": broker.id.short,
        "algorithm": broker.overlay.algorithm.value,
        "ready": broker.is_ready,
        "uptime_s": round(time.time() - broker.started_at, 3),
        "subscriptions": len(broker.core.table),
        "published": broker.published,
        "counters": counters,
        "cases": cases,
        "congested_brokers": sorted(each.short for each in broker.congestion.brokers),
        "publishers_waiting": broker.intake.waiting,
        "drops": {
            "links": sum(link.dropped for link in broker.links.values()),
            "links_cut": sum(link.lost for link in broker.links.values()),
            "clients": broker.client_drops + sum(each.dropped for each in sessions),
            "clients_left": broker.undelivered,
        },
        "links": {neighbour.short: _link(broker, link) for neighbour, link in broker.links.items()},
        "clients": {session.client: _client(session) for session in sessions},
    }


def _link(broker: Watched, link: NeighbourLink) -> dict[str, object]:
    status = broker.core.link_status[link.neighbour]
    status.roll(time.monotonic_ns())
    return {
        "kind": broker.overlay.scot.link_kind(broker.id, link.neighbour).value,
        "up": link.is_up,
        "queue_length": status.queue_length,
        "queue_bytes": link.queue.bytes,
        "q_in": status.q_in,
        "q_out": status.q_out,
        "congestion_element": round(status.congestion_element, 3),
        "overloaded": status.is_overloaded,
        "congested": link.queue.is_congested,
        "dropped": link.dropped,
        "lost_when_cut": link.lost,
        "reconnects": max(0, link.reconnects),
    }


def _client(session: ClientSession) -> dict[str, object]:
    return {
        "address": session.connection.address,
        "subscriptions": len(session.numbers),
        "queue_length": len(session.queue),
        "queue_bytes": session.queue.bytes,
        "delivered": session.delivered,
        "dropped": session.dropped,
        "publications_waiting": len(session.publications),
    }
