"""What a live broker writes down: the tables of a trace, as far as one broker can know them.

A broker sees a notification when it is accepted, when it leaves over a link and when it goes to a
client; nobody sees when its last copy has arrived. Columns that would need that are null.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from octopis.broker.queue_logs import ClientLog, LinkLog
from octopis.broker.settings import OverlayConfiguration
from octopis.broker.tracing import Row, Tracing
from octopis.broker.watchers import ClientWatcher, LinkWatcher
from octopis.core.delivery.lasting.durables import Excerpt
from octopis.core.model import BrokerId
from octopis.core.routing import Broker
from octopis.core.routing.link_status import LinkStatus
from octopis.core.wire.published import Published
from octopis.trace import RunSummary
from octopis.trace.summary import QueueBound
from octopis.version import __version__

if TYPE_CHECKING:
    from octopis.broker.telemetry.export import SpanCounts  # an extra brings what it needs

ROWS = 1_000
"""Rows of a table that are collected before they are handed over."""


class Recorder:
    """Writes nothing down: a broker without a trace has this one."""

    wants_windows = False
    """Whether `window` is to be called."""

    @property
    def spans(self) -> "SpanCounts | None":
        """What has become of the broker's spans; None where nothing is traced."""
        return None

    def make_core(self, *about: Any, **options: Any) -> Broker:
        """Make the broker's routing core."""
        return Broker(*about, **options)

    def published(self, batch: Sequence[Published]) -> None:
        """Notifications of own clients were accepted."""

    def subscribed(self, client: str, subscription: str) -> None:
        """An own client has subscribed."""

    def stored(self, subscription: str) -> None:
        """The broker knows a subscription that it did not know."""

    def link_log(self, neighbour: BrokerId) -> LinkWatcher | None:  # noqa: ARG002
        """Return what is told of a link's queue, if anybody wants to know."""
        return None

    def client_log(self, client: str) -> ClientWatcher | None:  # noqa: ARG002
        """Return what is told of one client's queue, if anybody wants to know."""
        return None

    def read(self, client: str, durable: str, found: Excerpt) -> None:
        """A client has read of a durable subscription."""

    def window(self, core: Broker) -> None:
        """A window of the link status has ended."""

    def finish(self, core: Broker, deliveries_lost: int) -> None:
        """The broker has stopped."""


class TraceRecorder(Recorder):
    """Writes down what one broker does."""

    def __init__(self, broker: BrokerId, overlay: OverlayConfiguration, tracing: Tracing) -> None:
        self._broker = broker
        self._overlay = overlay
        self._tracing = tracing
        self._tables = frozenset(tracing.level.tables)
        self.wants_windows = "queues" in self._tables
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
                algorithm=overlay.routing.algorithm,
                policy=overlay.queues.policy,
                write=writes_ims,
            )
            for neighbour in scot.neighbours(broker)
        }

    # What happened

    def published(self, batch: Sequence[Published]) -> None:
        """Write a row for each notification."""
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
        """Write a row of the table `subscriptions`."""
        self._subscriptions += 1
        if "subscriptions" in self._tables:
            unknown = (None,) * 5
            row = (subscription, client, self._broker.short, time.time_ns(), *unknown)
            self._add("subscriptions", [row])

    def stored(self, subscription: str) -> None:
        """Write a row of the table `stored`."""
        if "stored" in self._tables:
            self._add("stored", [(subscription, self._broker.short, time.time_ns(), None)])

    def link_log(self, neighbour: BrokerId) -> LinkLog:
        """Return the log of a link; its sums are always wanted."""
        return self._links[neighbour]

    def client_log(self, client: str) -> ClientLog | None:  # noqa: ARG002
        """Return what writes a row for each delivery, where the level wants that."""
        if "deliveries" not in self._tables:
            return None
        return ClientLog(self._broker.short, partial(self._add, "deliveries"))

    def window(self, core: Broker) -> None:
        """Write a row for each link on which something happened."""
        core.link_status.roll(time.monotonic_ns())
        now_ns, here = time.time_ns(), self._broker.short
        rows = [
            (now_ns, here, link.short, *_counts(each), each.is_overloaded)
            for link, each in core.link_status.items()
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
                policy=self._overlay.queues.policy.value,
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
            algorithm=self._overlay.routing.algorithm.value,
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
