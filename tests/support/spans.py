"""Live brokers that tell a collector what becomes of notifications, in tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from octopis.broker.telemetry.options import SpanOptions
from octopis.core.model import BrokerId
from support.collector import (
    Collector,
    Span,
    but_resends,
)
from support.live import (
    Brokers,
    client_of,
    tables_hold,
    until,
)


def tracing(collector: Collector, **options: Any) -> SpanOptions:
    return SpanOptions(collector.endpoint, **{"interval_s": 0.05, "timeout_s": 2.0} | options)


def at(live: Brokers, region: str, cluster: int = 0) -> Any:
    return live[BrokerId(region, cluster)]


async def heard(collector: Collector, count: int) -> list[Span]:
    """Return all spans once so many have come, and see that there are no more."""
    await until(lambda: len(but_resends(collector.spans)) >= count)
    await asyncio.sleep(0.2)
    found = but_resends(collector.spans)
    assert [each.place for each in found][count:] == []
    return found


@asynccontextmanager
async def subscribed(live: Brokers, *places: Any) -> AsyncIterator[list[Any]]:
    """Subscribe a client of that name at each place to all that has an n."""
    clients = [client_of(broker, client_id=name) for name, broker in places]
    for each in clients:
        await each.open()
    streams = [each.subscribe("n >= 0") for each in clients]
    for each in streams:
        await each.open()
    await tables_hold(live, len(places))
    try:
        yield streams
    finally:
        for client in clients:
            await client.close()
