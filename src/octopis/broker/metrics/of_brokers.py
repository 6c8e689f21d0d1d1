"""What a broker tells of itself, and of its clients: all of them together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from octopis.broker.metrics.declared import Family, Kind, Metric

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

_COUNTER = Kind.COUNTER


# Brokers


def _itself(broker: "LiveBroker") -> Iterator[tuple[tuple[str, ...], "LiveBroker"]]:
    yield (broker.id.short,), broker


def _messages(broker: "LiveBroker") -> dict[str, int]:
    counters = broker.core.counters
    return {
        "subscription": counters.subscription_ims,
        "notification": counters.notification_ims,
        "sync": counters.sync_ims,
    }


def _dropped(broker: "LiveBroker") -> dict[str, int]:
    counters, links, intake = broker.core.counters, broker.links.values(), broker.intake
    given_up = 0 if broker.posting is None else broker.posting.channels.sender.given_up
    return {
        "link_queue_full": sum(link.dropped for link in links),
        "link_cut": sum(link.lost for link in links),
        "link_down": counters.lost_on_down_links,
        "no_route": counters.lost_without_route,
        "unreadable": sum(link.unreadable for link in links),
        "slow_client": intake.dropped + sum(each.dropped for each in broker.clients.values()),
        "client_left": intake.undelivered + broker.effects.undelivered,
        "host_gone": given_up,
    }


BROKER: Family[Any] = Family(
    ["broker"],
    _itself,
    [
        Metric("octopis_ready", "Whether a broker takes requests.", lambda b: b.start_up.is_over),
        Metric(
            "octopis_start_time_seconds", "When it was started, since 1970.", lambda b: b.started_at
        ),
        Metric(
            "octopis_unheard_brokers",
            "Brokers of which it must still hear before it knows all subscriptions.",
            lambda b: len(b.core.unheard),
        ),
        Metric(
            "octopis_table_subscriptions",
            "Subscriptions in its routing table, of all brokers.",
            lambda b: len(b.core.table),
        ),
        Metric(
            "octopis_notifications_published",
            "Notifications that its clients have published.",
            lambda b: b.intake.published,
            _COUNTER,
        ),
        Metric(
            "octopis_deliveries",
            "Notifications for its clients, once for each subscription that matches.",
            lambda b: b.core.counters.deliveries,
            _COUNTER,
        ),
        Metric(
            "octopis_messages",
            "Messages put on queues to neighbours, by kind.",
            _messages,
            _COUNTER,
            "kind",
        ),
        Metric(
            "octopis_copies",
            "Copies of notifications under dynamic and target routing, by the rule's reason.",
            lambda b: dict(b.core.counters.cases),
            _COUNTER,
            "reason",
        ),
        Metric(
            "octopis_notifications_dropped",
            "What did not go on, by reason. With channels, what a link loses is sent again.",
            _dropped,
            _COUNTER,
            "reason",
        ),
        Metric(
            "octopis_notifications_rerouted",
            "Notifications routed anew when their link broke.",
            lambda b: b.core.counters.rerouted,
            _COUNTER,
        ),
        Metric(
            "octopis_duplicates",
            "Messages about subscriptions that were known already.",
            lambda b: b.core.counters.duplicates,
            _COUNTER,
        ),
        Metric(
            "octopis_backpressure_brokers",
            "Brokers that publishers here have to wait for, as queues or windows are full.",
            lambda b: len(list(b.backpressure.brokers)),
        ),
        Metric(
            "octopis_waiting_publishers",
            "Clients whose publications wait for their turn.",
            lambda b: b.intake.waiting,
        ),
        Metric(
            "octopis_congestion_threshold",
            "tau: a link whose queue is longer may be overloaded.",
            lambda b: b.overlay.routing.congestion_threshold,
        ),
    ],
)


# Clients, all of a broker together


class _Clients(NamedTuple):
    here: int
    away: int
    slow: int
    subscriptions: int
    queued: int
    queued_bytes: int


def _clients(broker: "LiveBroker") -> Iterator[tuple[tuple[str, ...], _Clients]]:
    here = away = slow = subscriptions = queued = queued_bytes = 0
    for session in broker.clients.values():
        if session.is_observer:
            continue
        here += 1
        away += session.is_kept
        queue = session.queue
        slow += queue.has_backpressure
        queued += len(queue)
        queued_bytes += queue.bytes
        subscriptions += len(session.numbers)
    yield (broker.id.short,), _Clients(here, away, slow, subscriptions, queued, queued_bytes)


CLIENTS: Family[_Clients] = Family(
    ["broker"],
    _clients,
    [
        Metric(
            "octopis_clients",
            "Clients, also those that are cut off and may come back.",
            lambda c: c.here,
        ),
        Metric(
            "octopis_clients_away", "Clients that are cut off and may come back.", lambda c: c.away
        ),
        Metric(
            "octopis_slow_clients",
            "Clients behind by more than client_queues.high_water, and not yet by half of it.",
            lambda c: c.slow,
        ),
        Metric(
            "octopis_client_subscriptions",
            "Subscriptions of its clients.",
            lambda c: c.subscriptions,
        ),
        Metric(
            "octopis_client_queue_messages",
            "Deliveries that wait for its clients.",
            lambda c: c.queued,
        ),
        Metric(
            "octopis_client_queue_bytes",
            "Bytes that wait for its clients.",
            lambda c: c.queued_bytes,
        ),
    ],
)
