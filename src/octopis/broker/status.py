"""How a live broker is, as JSON-able values: what `octopis overlay status` shows."""

import time
from dataclasses import asdict
from hashlib import blake2b
from typing import TYPE_CHECKING

from octopis.broker.clients.session import ClientSession
from octopis.broker.links.link import NeighbourLink
from octopis.core.delivery.options import Level

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker


def status_of(broker: "LiveBroker") -> dict[str, object]:
    """Return everything that there is to see of a broker."""
    counters = asdict(broker.core.counters)
    cases = counters.pop("cases")
    sessions = [each for each in broker.clients.values() if not each.is_observer]
    intake = broker.intake
    return {
        "broker": broker.id.short,
        "algorithm": broker.overlay.routing.algorithm.value,
        "ready": broker.start_up.is_over,
        "unheard": [each.short for each in broker.core.unheard],
        "uptime_s": round(time.time() - broker.started_at, 3),
        "subscriptions": len(broker.core.table),
        "heard": _heard(broker),
        "published": intake.published,
        "counters": counters,
        "cases": cases,
        "backpressure": sorted(each.short for each in broker.backpressure.brokers),
        "publishers_waiting": intake.waiting,
        "delivery": _delivery(broker),
        "drops": {
            "links": sum(link.dropped for link in broker.links.values()),
            "links_cut": sum(link.lost for link in broker.links.values()),
            "clients": intake.dropped + sum(each.dropped for each in sessions),
            "clients_left": intake.undelivered + broker.effects.undelivered,
        },
        **_disk(broker),
        **({} if broker.guard is None else {"security": broker.guard.status()}),
        "links": {neighbour.short: _link(broker, link) for neighbour, link in broker.links.items()},
        "clients": {session.client: _client(session) for session in sessions},
    }


def _heard(broker: "LiveBroker") -> str:
    """Return the same text at brokers that have heard the same of all hosts (target routing)."""
    known = [broker.core.heard_of(host) for host in broker.overlay.scot.brokers]
    return blake2b(repr(known).encode(), digest_size=8).hexdigest()


def _delivery(broker: "LiveBroker") -> dict[str, object]:
    """Return how channels are: what is under way from here, and what has come."""
    if broker.posting is None:
        return {"level": Level.NONE.value}
    sender, receiver = broker.posting.channels.sender, broker.posting.channels.receiver
    brokers_in = broker.overlay.scot.brokers_in
    return {
        "level": broker.overlay.level,
        "kept": sender.kept,
        "kept_bytes": sender.bytes,
        "waits_for": [each.short for each in brokers_in(sender.held)],
        "resent": sender.resent,
        "given_up": sender.given_up,
        "gone": [each.short for each in brokers_in(sender.gone)],
        "held_back": receiver.held,
        "duplicates": receiver.duplicates,
        "refused": receiver.refused,
    }


def _disk(broker: "LiveBroker") -> dict[str, object]:
    """Return how the disk is, and the durable subscriptions, where there are any."""
    if broker.keeping is None:
        return {}
    assert broker.desk is not None, "who has a disk has a desk"
    durables = {
        each.state.name: {
            "position": each.end,
            "acknowledged": each.state.acked,
            "lag": each.lag,
            "bytes": each.bytes,
            "dropped": each.state.dropped,
            "suspended": each.state.is_suspended,
            "ends_ns": broker.desk.ends_ns(each),
        }
        for each in broker.keeping.channels.durables
    }
    return {"store": broker.keeping.status(), "durables": durables}


def _link(broker: "LiveBroker", link: NeighbourLink) -> dict[str, object]:
    status = broker.core.link_status[link.neighbour]
    status.roll(time.monotonic_ns())
    return {
        "kind": broker.overlay.scot.link_kind(broker.id, link.neighbour).value,
        "up": link.is_up,
        "queue_length": status.queue_length,
        "queue_bytes": link.queue.bytes,
        "changes_waiting": len(link.changes),
        "q_in": status.q_in,
        "q_out": status.q_out,
        "congestion_element": round(status.congestion_element, 3),
        "overloaded": status.is_overloaded,
        "backpressure": link.queue.has_backpressure,
        "sent": link.sent,
        "around_overload": status.around_overload,
        "around_fault": status.around_fault,
        "dropped": link.dropped,
        "lost_when_cut": link.lost,
        "unreadable": link.unreadable,
        "reconnects": max(0, link.reconnects),
    }


def _client(session: ClientSession) -> dict[str, object]:
    return {
        "address": session.connection.address,
        "connected": not session.is_kept,
        "subscriptions": len(session.numbers),
        "queue_length": len(session.queue),
        "queue_bytes": session.queue.bytes,
        "backpressure": session.queue.has_backpressure,
        "delivered": session.deliveries.count,
        "dropped": session.dropped,
        "publications_waiting": len(session.publications),
    }
