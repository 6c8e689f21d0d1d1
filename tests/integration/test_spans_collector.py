"""Collectors of spans that are away, or do not take what they get: they hold up nobody."""

import time

import pytest

from octopis.core.routing import Algorithm
from support.collector import (
    TRACEPARENT,
    Collector,
    but_resends,
    collecting,
)
from support.live import (
    Brokers,
    client_of,
    line,
    overlay,
    ready,
    run_live,
    until,
)
from support.spans import at, heard, subscribed, tracing


async def publish_many(live: Brokers, count: int) -> float:
    """Publish so many that are traced, have them all delivered, and return how long that took."""
    async with subscribed(live, ("far", at(live, "c"))) as (stream,):
        async with client_of(at(live, "a")) as writer:
            begun = time.monotonic()
            for number in range(count):
                await writer.publish({"n": number, "traceparent": TRACEPARENT})
            for _ in range(count):
                await anext(stream)
            return time.monotonic() - begun


def test_collector_that_is_away_holds_up_nobody_and_is_said_once(caplog: pytest.LogCaptureFixture):
    async def work() -> None:
        with collecting() as gone:
            options = tracing(gone, queue=50, timeout_s=1.0)
        async with ready(overlay(line(3), Algorithm.TNR, tracing=options)) as live:
            await publish_many(live, 200)
            await until(lambda: at(live, "a").recorder.spans.refused > 0)
            counts = [each.recorder.spans for each in live.values()]
            assert sum(each.queue_full for each in counts) > 0
            assert sum(each.exported for each in counts) == 0
            stopping = time.monotonic()
        assert time.monotonic() - stopping < 8
        # Three brokers, four spans: a publication, two hops, a delivery; and what is sent again.
        assert sum(each.refused + each.queue_full for each in counts) >= 800

    run_live(work())
    said = [each.getMessage() for each in caplog.records if "spans were dropped" in each.message]
    assert 1 <= len(said) <= 2
    assert "127.0.0.1" in said[0]
    assert not [each for each in caplog.records if each.name.startswith("opentelemetry")]


def test_collector_that_never_answers_holds_up_nobody():
    async def work(collector: Collector) -> None:
        collector.released.clear()
        options = tracing(collector, timeout_s=30.0)
        async with ready(overlay(line(3), Algorithm.TNR, tracing=options)) as live:
            await publish_many(live, 50)
            await until(lambda: collector.requests)
            stopping = time.monotonic()
        assert time.monotonic() - stopping < 8

    with collecting() as collector:
        run_live(work(collector))


def test_collector_that_is_back_gets_spans_again():
    async def work(collector: Collector) -> None:
        collector.status = 400
        async with ready(overlay(line(3), Algorithm.TNR, tracing=tracing(collector))) as live:
            await publish_many(live, 1)
            await until(lambda: sum(each.recorder.spans.refused for each in live.values()) >= 4)
            collector.status = 200
            await publish_many(live, 1)
            await heard(collector, 4)
            counts = [each.recorder.spans for each in live.values()]
            await until(lambda: sum(each.exported for each in counts) == len(collector.spans))

    with collecting() as collector:
        run_live(work(collector))


def test_last_spans_are_sent_when_brokers_stop():
    async def work(collector: Collector) -> None:
        options = tracing(collector, interval_s=30.0)
        async with ready(overlay(line(3), Algorithm.TNR, tracing=options)) as live:
            await publish_many(live, 3)
            assert not collector.spans
        assert len(but_resends(collector.spans)) == 12

    with collecting() as collector:
        run_live(work(collector))
