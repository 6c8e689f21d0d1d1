"""What a broker tells of its links, and of its channels to other hosts."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from octopis.broker.links.link import NeighbourLink
from octopis.broker.links.posting import Posting
from octopis.broker.metrics.declared import Family, Kind, Metric
from octopis.core.routing.link_status import LinkStatus

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

_COUNTER = Kind.COUNTER


# Links


class _Link(NamedTuple):
    end: NeighbourLink
    status: LinkStatus


def _links(broker: "LiveBroker") -> Iterator[tuple[tuple[str, ...], _Link]]:
    now_ns = time.monotonic_ns()
    for neighbour, end in broker.links.items():
        status = broker.core.link_status[neighbour]
        status.roll(now_ns)
        kind = broker.overlay.scot.link_kind(broker.id, neighbour).value
        yield (broker.id.short, neighbour.short, kind), _Link(end, status)


def _around(link: _Link) -> dict[str, int]:
    return {"overload": link.status.around_overload, "fault": link.status.around_fault}


LINK: Family[_Link] = Family(
    ["broker", "neighbour", "kind"],
    _links,
    [
        Metric("octopis_link_up", "Whether the link's connection stands.", lambda at: at.end.is_up),
        Metric(
            "octopis_link_overloaded",
            "Whether the link is overloaded, as routing sees it.",
            lambda at: at.status.is_overloaded,
        ),
        Metric(
            "octopis_link_queue_messages",
            "Messages that wait for the link.",
            lambda at: at.status.queue_length,
        ),
        Metric(
            "octopis_link_queue_bytes",
            "Bytes of notifications that wait for it.",
            lambda at: at.end.queue.bytes,
        ),
        Metric(
            "octopis_link_congestion_element",
            "(1 + Q_in) / (1 + Q_out) of the last window: above 1 the queue grew.",
            lambda at: at.status.congestion_element,
        ),
        Metric(
            "octopis_link_changes_waiting",
            "Changes of subscriptions that wait for it.",
            lambda at: len(at.end.changes),
        ),
        Metric(
            "octopis_link_sent_messages",
            "Messages that went over it.",
            lambda at: at.end.sent,
            _COUNTER,
        ),
        Metric(
            "octopis_link_sent_bytes",
            "Bytes that went over it from its queue.",
            lambda at: at.end.sent_bytes,
            _COUNTER,
        ),
        Metric(
            "octopis_link_around_copies",
            "Copies put on it to go around an overloaded link or a fault (target routing).",
            _around,
            _COUNTER,
            "reason",
        ),
        Metric(
            "octopis_link_dropped",
            "Notifications that its full queue has dropped.",
            lambda at: at.end.dropped,
            _COUNTER,
        ),
        Metric(
            "octopis_link_lost",
            "Notifications lost with its connection.",
            lambda at: at.end.lost,
            _COUNTER,
        ),
        Metric(
            "octopis_link_reconnects",
            "How often it has come up again.",
            lambda at: max(0, at.end.reconnects),
            _COUNTER,
        ),
    ],
)


# Channels between hosts


def _channels(broker: "LiveBroker") -> Iterator[tuple[tuple[str, ...], Posting]]:
    if broker.posting is not None:
        yield (broker.id.short,), broker.posting


CHANNELS: Family[Posting] = Family(
    ["broker"],
    _channels,
    [
        Metric(
            "octopis_channel_kept_messages",
            "Notifications kept until all targets have them.",
            lambda at: at.channels.sender.kept,
        ),
        Metric(
            "octopis_channel_kept_bytes", "The same in bytes.", lambda at: at.channels.sender.bytes
        ),
        Metric(
            "octopis_channel_full_windows",
            "Hosts that lack a whole window of what was published here: publishers wait for them.",
            lambda at: at.channels.sender.held.bit_count(),
        ),
        Metric(
            "octopis_channel_gone_hosts",
            "Hosts that were silent for too long, and are not back.",
            lambda at: at.channels.sender.gone.bit_count(),
        ),
        Metric(
            "octopis_channel_resent",
            "Notifications sent again.",
            lambda at: at.channels.sender.resent,
            _COUNTER,
        ),
        Metric(
            "octopis_channel_held_back_messages",
            "Notifications that wait for earlier ones.",
            lambda at: at.channels.receiver.held,
        ),
        Metric(
            "octopis_channel_duplicates",
            "Notifications that came again, and were left out.",
            lambda at: at.channels.receiver.duplicates,
            _COUNTER,
        ),
    ],
)
