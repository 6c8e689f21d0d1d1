"""What a live broker writes down: the tables of a trace, as far as one broker can know them.

A broker sees a notification when it is accepted, when it leaves over a link and when it goes to a
client; nobody sees when its last copy has arrived. Columns that would need that are null.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from octopis.broker.link_log import LinkLog, Row
from octopis.broker.recording import Recording
from octopis.broker.settings import OverlayConfiguration
from octopis.broker.tracing import Tracing
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Broker, Message, Reason
from octopis.core.routing.link_status import LinkStatus
from octopis.core.wire.published import Published
from octopis.trace import RunSummary
from octopis.trace.summary import QueueBound
from octopis.version import __version__

ROWS = 1_000
"""Rows of a table that are collected before they are handed over."""


class ClientLog:
    """Mirrors a client's queue; a row is made of each delivery when it goes to the client."""

    def __init__(self, broker: str, write: Callable[[list[Row]], None]) -> None:
        self._broker = broker
        self._write = write
        self._waiting: deque[tuple[str, int, list[str]]] = deque()

    def queued(self, notification: Notification, subscriptions: list[str]) -> None:
        """A notification is about to go on the client's queue."""
        assert isinstance(notification, Published), "only what came over the wire is delivered"
        self._waiting.append((notification.publisher, notification.sequence, subscriptions))

    def left(self, count: int) -> None:
        """Notifications went to the client."""
        now_ns = time.time_ns()
        self._write(
            [
                (publisher, sequence, subscription, self._broker, now_ns, None)
                for publisher, sequence, subscriptions in self._taken(count)
                for subscription in subscriptions
            ]
        )

    def dropped(self, count: int) -> None:
        """The oldest were dropped."""
        self._taken(count)

    def _taken(self, count: int) -> list[tuple[str, int, list[str]]]:
        return [self._waiting.popleft() for _ in range(count)]


class TraceRecorder(Recording):
    """Writes down what one broker does."""

    def __init__(self, broker: BrokerId, overlay: OverlayConfiguration, tracing: Tracing) -> None:
        self._broker = broker
        self._overlay = overlay
        self._tracing = tracing
        self._tables = frozenset(tracing.level.tables)
        self._rows: dict[str, list[Row]] = {name: [] for name in tracing.level.tables}
        self._begin_ns = time.time_ns()
        self._subscriptions = self._notifications = 0
        scot = overlay.scot
        writes_ims = partial(self._add, "ims") if "ims" in self._tables else None
        self._links = {
            neighbour: LinkLog(
                broker,
                neighbour,
                kind=scot.link_kind(broker, neighbour).value,
                clusters=len(scot.clusters),
                algorithm=overlay.algorithm,
                policy=overlay.link_policy,
                write=writes_ims,
            )
            for neighbour in scot.neighbours(broker)
        }

    # What happened

    def published(self, batch: Sequence[Published]) -> None:
        """Notifications of own clients were accepted."""
        self._notifications += len(batch)
        if "publications" in self._tables:
            now_ns, here = time.time_ns(), self._broker.short
            unknown = (None,) * 4
            rows = [
                (each.publisher, each.sequence, here, each.intended_ns, now_ns, *unknown)
                for each in batch
            ]
            self._add("publications", rows)

    def subscribed(self, client: str, subscription: str) -> None:
        """An own client has subscribed."""
        self._subscriptions += 1
        if "subscriptions" in self._tables:
            unknown = (None,) * 5
            row = (subscription, client, self._broker.short, time.time_ns(), *unknown)
            self._add("subscriptions", [row])

    def stored(self, subscription: str) -> None:
        """The broker knows a subscription that it did not know."""
        if "stored" in self._tables:
            self._add("stored", [(subscription, self._broker.short, time.time_ns(), None)])

    def deliveries(self) -> ClientLog | None:
        """Return what writes down the deliveries to a client; None where nobody wants them."""
        if "deliveries" not in self._tables:
            return None
        return ClientLog(self._broker.short, partial(self._add, "deliveries"))

    def enqueued(self, link: BrokerId, messages: list[Message], reasons: list[Reason]) -> None:
        """Messages are about to go on a link's queue."""
        self._links[link].enqueued(messages, reasons, time.time_ns())

    def left(self, link: BrokerId, count: int) -> None:
        """Messages went over a link."""
        self._links[link].left(count, time.time_ns())

    def dropped(self, link: BrokerId, count: int) -> None:
        """A full queue has lost notifications."""
        self._links[link].lost(count, time.time_ns())

    def link_down(self, link: BrokerId) -> None:
        """A link is down, and its queue is lost."""
        self._links[link].went_down(time.time_ns())

    def window(self, core: Broker) -> None:
        """A window has ended."""
        if "queues" not in self._tables:
            return
        now_ns, here, status = time.time_ns(), self._broker.short, core.link_status
        rows = [
            (now_ns, here, link.short, *_counts(each), each.is_overloaded)
            for link, each in status.items()
            if each.queue_length or each.q_in or each.q_out
        ]
        self._add("queues", rows)

    def finish(self, core: Broker, deliveries_lost: int) -> None:
        """Hand over what waits, the sums of all links, and the summary."""
        self._add("links", [log.summed() for log in self._links.values()])
        for table, rows in self._rows.items():
            self._tracing.add(self._broker, table, rows)
        self._rows = {name: [] for name in self._rows}
        self._tracing.finish(self._broker, self._summary(core, deliveries_lost))

    def _add(self, table: str, rows: list[Row]) -> None:
        waiting = self._rows[table]
        waiting += rows
        if len(waiting) >= ROWS:
            self._rows[table] = []
            self._tracing.add(self._broker, table, waiting)

    def _summary(self, core: Broker, deliveries_lost: int) -> RunSummary:
        counters = core.counters
        bounds = [
            QueueBound(
                source=self._broker.short,
                target=link.short,
                first_ns=log.first_dropped_ns,
                policy=self._overlay.link_policy.value,
                dropped=log.dropped,
            )
            for link, log in self._links.items()
            if log.first_dropped_ns is not None
        ]
        return RunSummary(
            version=__version__,
            source="live",
            broker=self._broker.short,
            scenario="",
            scenario_digest="",
            seed=0,
            algorithm=self._overlay.algorithm.value,
            level=self._tracing.level.value,
            state="complete",
            begin_ns=self._begin_ns,
            end_ns=time.time_ns(),
            brokers=1,
            subscriptions=self._subscriptions,
            notifications=self._notifications,
            deliveries=counters.deliveries,
            deliveries_lost=deliveries_lost,
            subscription_ims=counters.subscription_ims,
            subscription_duplicates=counters.duplicates,
            notification_ims=counters.notification_ims,
            sync_ims=counters.sync_ims,
            dnr_cases=dict(counters.cases),
            queue_length_max=max((log.length_max for log in self._links.values()), default=0),
            input_wait_max_ns=0,
            queue_bounds=bounds,
        )


def _counts(status: LinkStatus) -> tuple[int, int, int]:
    return status.queue_length, status.q_in, status.q_out
