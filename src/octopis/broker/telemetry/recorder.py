"""What a broker that traces tells its tracer, beside whatever else is written down of it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from octopis.broker.recorder import Recorder
from octopis.broker.settings import LinkPolicy, OverlayConfiguration
from octopis.broker.telemetry.core import TracedCore
from octopis.broker.telemetry.export import Export, SpanCounts
from octopis.broker.telemetry.queues import ClientSpans, LinkSpans
from octopis.broker.telemetry.visits import Tracer
from octopis.core.delivery.lasting.durables import Excerpt
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Broker
from octopis.core.wire.published import Published, decode_one
from octopis.errors import ProtocolError

_log = logging.getLogger(__name__)


@asynccontextmanager
async def recorders(
    overlay: OverlayConfiguration, beside: Callable[[BrokerId], Recorder]
) -> AsyncIterator[Callable[[BrokerId], Recorder]]:
    """Export spans meanwhile; yield what makes the recorder of each broker of this process.

    `beside` makes those that write down whatever else is to be known.
    """
    export = Export(overlay.tracing)
    algorithm, policy = overlay.routing.algorithm, overlay.queues.policy
    _log.info("spans go to %s", overlay.tracing.url)
    try:
        yield lambda broker: SpanRecorder(broker, algorithm, policy, export, beside(broker))
    finally:
        await asyncio.to_thread(export.close)


class SpanRecorder(Recorder):
    """Follows traced notifications through one broker, and lets another recorder know the rest."""

    def __init__(
        self,
        broker: BrokerId,
        algorithm: Algorithm,
        policy: LinkPolicy,
        export: Export,
        beside: Recorder,
    ) -> None:
        self.wants_windows = beside.wants_windows
        self._beside = beside
        self._policy = policy
        self._spans = export.counts(broker.short)
        self._tracer = Tracer(broker, algorithm, export.add)

    @property
    def spans(self) -> SpanCounts:
        """What has become of the broker's spans."""
        return self._spans

    def make_core(self, *about: Any, **options: Any) -> Broker:
        """Make the broker's routing core, which is watched."""
        return TracedCore(self._tracer, *about, **options)

    def link_log(self, neighbour: BrokerId) -> LinkSpans:
        """Return what follows copies on a link's queue."""
        beside = self._beside.link_log(neighbour)
        return LinkSpans(neighbour, self._tracer, self._policy, beside)

    def client_log(self, client: str) -> ClientSpans:
        """Return what follows deliveries on a client's queue."""
        return ClientSpans(client, self._tracer, self._beside.client_log(client))

    def read(self, client: str, durable: str, found: Excerpt) -> None:
        """Tell of what a client has read of a durable subscription."""
        for position, body in zip(found.positions, found.bodies, strict=True):
            if b"traceparent" not in body:
                continue
            try:
                notification = decode_one(body)
            except ProtocolError:  # the client will say so
                continue
            about = {"octopis.client": client, "octopis.durable": durable}
            self._tracer.read(notification, about | {"octopis.position": position})

    def finish(self, core: Broker, deliveries_lost: int) -> None:
        """Let all spans be over: the broker has stopped."""
        for visit in list(self._tracer.open):
            visit.end()
        self._beside.finish(core, deliveries_lost)

    # What is not traced

    def published(self, batch: Sequence[Published]) -> None:
        """Tell the other one."""
        self._beside.published(batch)

    def subscribed(self, client: str, subscription: str) -> None:
        """Tell the other one."""
        self._beside.subscribed(client, subscription)

    def stored(self, subscription: str) -> None:
        """Tell the other one."""
        self._beside.stored(subscription)

    def window(self, core: Broker) -> None:
        """Tell the other one."""
        self._beside.window(core)
