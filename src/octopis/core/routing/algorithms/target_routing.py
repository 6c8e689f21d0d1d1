"""How a broker routes notifications by their targets: it matches them, and asks the rule (tnr.py).

A batch is matched at once. It is passed on in parts, so that what has gone onto queues may leave
them before the rule asks how long these are.
"""

import sys
from collections.abc import Iterator, Sequence
from math import inf
from operator import attrgetter
from typing import NamedTuple, Protocol

from octopis.core.model import BrokerId
from octopis.core.model.notification import UNREADABLE
from octopis.core.routing.algorithms.tnr import (
    Crossroads,
    Detours,
    own_reasons,
    redirect,
    tried_over,
)
from octopis.core.routing.link_status import LinkStatus
from octopis.core.routing.messages import NO_CLUSTERS, NotificationMessage, Reason, copy_for
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.table import RoutingTable

_QUICK_PARTS = 8
"""So many times as much may wait for a link that has been quick so far."""

_AROUND_OVERLOAD, _AROUND_FAULT = Reason.AROUND_OVERLOAD, Reason.AROUND_FAULT
_targets = attrgetter("targets")
_NO_DETOURS: Detours = {}

_Copies = dict[LinkStatus, list[NotificationMessage]]
"""What goes over each link."""


class Accepted(NamedTuple):
    """What local publishers have published: matched and numbered, and not on its way yet.

    `matches` are the subscriptions of local clients for each of the `batch`; `onward` is what goes
    to other brokers.
    """

    batch: Sequence[NotificationMessage]
    matches: list[list[str]]
    onward: Sequence[NotificationMessage]


class HostChannels(Protocol):
    """What sees to it that notifications come once and in order (octopis.core.delivery)."""

    def accept(
        self, batch: Sequence[NotificationMessage], matches: list[list[str]], now_ns: int
    ) -> Accepted:
        """Number what a local publisher sends, and keep what must outlive this broker.

        Each notification comes with its targets, this broker perhaps among them.
        """

    def keep(
        self, arrived: Sequence[NotificationMessage], matches: list[list[str]]
    ) -> list[list[str]]:
        """Keep what must outlive this broker; return the subscriptions to deliver to now."""

    def in_order(
        self, arrived: Sequence[NotificationMessage], now_ns: int
    ) -> Sequence[NotificationMessage]:
        """Return what may be delivered now, in order, of what has come and what has waited."""

    def host_lives(self, host: BrokerId, life: int, now_ns: int) -> None:
        """Know which life of a host has made the subscriptions that are known of it."""


class TargetRouting:
    """Matches at the publisher's host and at the targets; on the way the rule alone decides.

    With `channels`, what arrives is delivered once and in order; without, as it comes.
    """

    def __init__(
        self,
        here: Crossroads,
        table: RoutingTable,
        outbox: Outbox,
        clients: LocalClients,
        channels: HostChannels | None = None,
    ) -> None:
        self._channels = channels
        self._here = here
        self._table = table
        self._outbox = outbox
        self._clients = clients

    @property
    def batch_max(self) -> int:
        """A batch is on its queues before any of it leaves: a larger one would look congested.

        Without another cluster there is nothing to decide by that.
        """
        if not self._here.icols:
            return sys.maxsize
        room = min((status.congestion_threshold for status in self._here.links), default=inf)
        return max(1, int(min(room, sys.maxsize)))

    def route(
        self, batch: Sequence[NotificationMessage], sender: BrokerId | None, now_ns: int
    ) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        if sender is None:
            accepted = self.accept(batch, now_ns)
            self._clients.deliver(accepted.batch, accepted.matches)
            self.pass_on(accepted.onward, now_ns)
        else:
            self._deliver(batch, now_ns)
            self.pass_on(batch, now_ns)

    def route_in_parts(
        self, batch: Sequence[NotificationMessage], sender: BrokerId | None, now_ns: int
    ) -> Iterator[None]:
        """Match a batch at once, and pass on a part at a time: queues may empty in between.

        Where all are empty, links have taken what there was at once: they get more together.
        """
        if sender is None:
            yield from self.release(self.accept(batch, now_ns), now_ns)
        else:
            self._deliver(batch, now_ns)
            yield from self._pass_on_in_parts(batch, now_ns)

    def accept(self, batch: Sequence[NotificationMessage], now_ns: int) -> Accepted:
        """Match and number what local publishers send; nothing goes anywhere yet."""
        attributes = [message.notification.attributes for message in batch]
        targets, matches = self._table.reached_and_local(attributes)
        if self._channels is None:
            others = self._here.others
            onward = [
                NotificationMessage(message.notification, NO_CLUSTERS, hosts)
                for message, hosts in zip(batch, targets, strict=True)
                if hosts & others
            ]
            return Accepted(batch, matches, onward)
        targeted = [
            NotificationMessage(message.notification, NO_CLUSTERS, hosts)
            for message, hosts in zip(batch, targets, strict=True)
        ]
        return self._channels.accept(targeted, matches, now_ns)

    def release(self, accepted: Accepted, now_ns: int) -> Iterator[None]:
        """Deliver to local clients what was accepted, and pass it on, a part at a time."""
        self._clients.deliver(accepted.batch, accepted.matches)
        yield from self._pass_on_in_parts(accepted.onward, now_ns)

    def _pass_on_in_parts(
        self, batch: Sequence[NotificationMessage], now_ns: int
    ) -> Iterator[None]:
        start = 0
        while start < len(batch):
            is_quick = not any(link.queue_length for link in self._here.links)
            end = start + (_QUICK_PARTS * self.batch_max if is_quick else self.batch_max)
            self.pass_on(batch[start:end], now_ns, is_quick=is_quick)
            start = end
            yield
        if not batch:  # nothing goes on, but local clients may have got something
            yield

    def _deliver(self, batch: Sequence[NotificationMessage], now_ns: int) -> None:
        """Deliver to local clients what has come for them."""
        arrived: Sequence[NotificationMessage] = [
            message for message in batch if message.targets & self._here.own_bit
        ]
        if arrived and self._channels is not None:
            arrived = self._channels.in_order(arrived, now_ns)
        self.deliver(arrived)

    def deliver(self, arrived: Sequence[NotificationMessage]) -> None:
        """Deliver to local clients what has arrived for them."""
        if not arrived:
            return
        attributes = [message.notification.attributes for message in arrived]
        if self._channels is None:
            self._clients.deliver(arrived, self._table.local_matches(attributes))
            return
        is_unreadable = [each is UNREADABLE for each in attributes]
        matches = self._table.local_matches(attributes)
        if any(is_unreadable):
            matches = [
                [] if unreadable else found
                for unreadable, found in zip(is_unreadable, matches, strict=True)
            ]
        self._clients.deliver(arrived, self._channels.keep(arrived, matches))

    def pass_on(
        self, batch: Sequence[NotificationMessage], now_ns: int, *, is_quick: bool = False
    ) -> None:
        """Send copies to the targets beyond this broker, all of a link together.

        `is_quick`: links take it at once, as far as is known, and no queue grows by it.
        """
        here = self._here
        closed = here.closed(now_ns)
        stays_open = not closed and (is_quick or here.has_room_for(len(batch)))
        copies: _Copies = {link: [] for link in here.links}
        noted: list[tuple[LinkStatus, int, Reason]] = []
        for message in batch:
            notification, tried = message.notification, message.tried
            parts, stuck = here.split(message.targets & here.others, tried, closed)
            detours = _NO_DETOURS
            if stuck:
                detours, lost = redirect(here, parts, stuck, tried, closed)
                self._outbox.counters.lost_without_route += lost.bit_count()
            for way, part in parts.items():
                carried = tried_over(way, tried) if tried else 0
                if detours and way in detours:
                    carried, reason = detours[way]
                    noted.append((way, len(copies[way]), reason))
                if message.distances:
                    copy = copy_for(message, part, carried)
                else:  # on no channel there is nothing else to carry
                    copy = NotificationMessage(notification, NO_CLUSTERS, part, carried)
                copies[way].append(copy)
                if not stays_open:  # the next one asks how long this queue is
                    way.queue_length += 1
                    if way.queue_length > way.longest_uncongested:
                        closed.add(way)
        for way, messages in copies.items():
            way.entering += len(messages)
            if stays_open:
                way.queue_length += len(messages)
        self._send(copies, noted)

    def _send(self, copies: _Copies, noted: list[tuple[LinkStatus, int, Reason]]) -> None:
        """Put copies on the queues of their links. `noted`: which of them do not go their own way.

        These have a reason of their own, at their place among the copies.
        """
        counters = self._outbox.counters
        reasons = {
            way: own_reasons(self._here, way, map(_targets, messages), len(messages))
            for way, messages in copies.items()
            if messages
        }
        for way, place, reason in noted:
            reasons[way][place] = reason
            way.around_overload += reason is _AROUND_OVERLOAD
            way.around_fault += reason is _AROUND_FAULT
        for way, why in reasons.items():
            for reason in {why[0]} if why.count(why[0]) == len(why) else set(why):
                counters.count_case(reason.value, why.count(reason))
            self._outbox.enqueue(way.link, copies[way], why)
