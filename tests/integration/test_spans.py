"""Spans of real brokers, as a collector gets them that speaks OTLP/HTTP."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from octopis import connect_sync
from octopis.benchmarks.processes import free_ports
from octopis.broker.settings import Durability, Shape
from octopis.broker.telemetry.options import SpanOptions
from octopis.broker.tracing import TraceOptions
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.overlay.deployment import running
from octopis.trace import Level
from support.collector import (
    ROOT,
    TRACE,
    TRACEPARENT,
    Collector,
    Span,
    but_resends,
    collecting,
    tree,
)
from support.live import (
    PLAIN,
    client_of,
    line,
    overlay,
    quiet,
    ready,
    run_live,
    tables_hold,
    until,
)
from support.overlay_command import SMALL, Shell, wait_until
from support.scrapes import scrape
from support.spans import at, heard, subscribed, tracing

WHAT = {"publisher", "sequence", "broker", "source", "target", "kind", "reason", "fate", "client"}
"""Columns of a trace that have nothing to do with times or chance."""

SERVER, PRODUCER, CONSUMER = 2, 4, 5


def of(place: str, spans: list[Span]) -> list[Span]:
    """Return the spans of a place, the earliest first."""
    return sorted((each for each in spans if each.place == place), key=lambda each: each.begun_ns)


@pytest.mark.parametrize(
    ("algorithm", "delivery"),
    [*((each, PLAIN) for each in Algorithm), (Algorithm.TNR, DeliveryOptions())],
)
def test_spans_of_a_notification_to_two_places_are_one_tree(
    algorithm: Algorithm, delivery: DeliveryOptions
):
    async def work(collector: Collector) -> None:
        configuration = overlay(line(4), algorithm, tracing=tracing(collector), delivery=delivery)
        async with ready(configuration) as live:
            readers = ("near", at(live, "b")), ("far", at(live, "d"))
            async with subscribed(live, *readers) as streams:
                async with client_of(at(live, "a"), client_id="pub") as writer:
                    await writer.publish({"n": 1, "traceparent": TRACEPARENT}, payload=b"secret")
                for each in streams:
                    assert (await anext(each)).attributes["traceparent"] == TRACEPARENT
                spans = await heard(collector, 6)
        assert tree(spans) == {
            "publish a,0": "publisher",
            "hop b,0": "publish a,0",
            "deliver b,0 to near": "hop b,0",
            "hop c,0": "hop b,0",
            "hop d,0": "hop c,0",
            "deliver d,0 to far": "hop d,0",
        }
        by_place = {each.place: each for each in spans}
        publish, hop = by_place["publish a,0"], by_place["hop c,0"]
        assert publish.name == "publish"
        assert [each.kind for each in (publish, hop)] == [SERVER, CONSUMER]
        assert by_place["deliver d,0"].kind == PRODUCER
        assert hop.about["from"] == "b,0"
        assert hop.about["algorithm"] == algorithm.value
        assert hop.about["publisher"] == "pub"
        assert hop.about["sequence"] == publish.about["sequence"]
        assert hop.about["messaging.system"] == "octopis"
        assert hop.service == "octopis"
        if algorithm is Algorithm.TNR:
            assert [by_place[f"hop {each},0"].about["targets"] for each in "bcd"] == [2, 1, 1]
        assert [(each.name, each.about["to"]) for each in hop.events] == [("sent", "d,0")]
        assert "secret" not in repr(spans)
        assert not any("'n'" in repr(each.about) for each in spans)

    with collecting() as collector:
        run_live(work(collector))


def test_what_carries_no_traceparent_or_a_malformed_one_makes_no_span():
    bad = [
        "",
        "00",
        TRACEPARENT.upper(),
        TRACEPARENT + "-00",
        "ff" + TRACEPARENT[2:],
        "01" + TRACEPARENT[2:],
        TRACEPARENT[:-2] + "00",  # not sampled
        f"00-{'0' * 32}-{ROOT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        TRACEPARENT.replace("a", "g"),
        17,
        True,
    ]

    async def work(collector: Collector) -> None:
        configuration = overlay(line(3), Algorithm.TNR, tracing=tracing(collector))
        async with ready(configuration) as live:
            async with subscribed(live, ("far", at(live, "c"))) as (stream,):
                async with client_of(at(live, "a")) as writer:
                    await writer.publish({"n": 0}, payload=TRACEPARENT.encode())
                    await writer.publish(
                        {"n": 0, "other": TRACEPARENT}, payload=b"traceparent\xd97"
                    )
                    for each in bad:
                        await writer.publish({"n": 1, "traceparent": each})
                    await writer.publish({"n": 2, "traceparent": TRACEPARENT})
                for _ in range(len(bad) + 3):
                    await anext(stream)
                spans = await heard(collector, 4)
        assert {each.about["sequence"] for each in spans} == {spans[0].about["sequence"]}

    with collecting() as collector:
        run_live(work(collector))


def test_way_around_a_cut_link_shows_in_the_spans():
    async def work(collector: Collector) -> None:
        configuration = overlay(line(2, 2), Algorithm.TNR, tracing=tracing(collector))
        async with ready(configuration) as live:
            async with subscribed(live, ("far", at(live, "b"))) as (stream,):
                # Both ends refuse the link from now on; each redials in vain.
                for here, there in (("a", "b"), ("b", "a")):
                    link = at(live, here).links[BrokerId(there, 0)]
                    link.up = lambda connection: connection.close("cut by the test")
                    link.cut("cut by the test")
                async with client_of(at(live, "a")) as writer:
                    await writer.publish({"n": 1, "traceparent": TRACEPARENT})
                await anext(stream)
                spans = await heard(collector, 5)
        assert tree(spans) == {
            "publish a,0": "publisher",
            "hop a,1": "publish a,0",
            "hop b,1": "hop a,1",
            "hop b,0": "hop b,1",
            "deliver b,0 to far": "hop b,0",
        }
        by_place = {each.place: each for each in spans}
        first = by_place["publish a,0"]
        assert first.about["around"] == "fault"
        assert [each.about["reason"] for each in first.events] == ["around fault"]
        assert by_place["hop a,1"].about["sent_around"] is True
        assert "around" not in by_place["hop b,1"].about

    with collecting() as collector:
        run_live(work(collector))


def test_what_waits_on_a_link_that_breaks_is_rerouted_in_a_visit_of_its_own():
    slow = {(BrokerId("a", 0), BrokerId("b", 0)): Shape(bandwidth_bytes_per_s=1.0)}

    async def work(collector: Collector) -> None:
        options = {"tracing": tracing(collector), "shapes": slow, "delivery": PLAIN}
        async with ready(overlay(line(2, 2), Algorithm.TNR, **options)) as live:
            async with subscribed(live, ("far", at(live, "b"))) as (stream,):
                async with client_of(at(live, "a")) as writer:
                    await writer.publish({"n": 1}, payload=b"x" * 2000)  # the link is busy with it
                    await writer.publish({"n": 2, "traceparent": TRACEPARENT})
                    link = at(live, "a").links[BrokerId("b", 0)]
                    await until(lambda: len(link.queue) >= 1)
                    link.up = lambda connection: connection.close("cut by the test")
                    link.cut("cut by the test")
                    for _ in range(2):
                        await anext(stream)
                await until(lambda: any("deliver" in each.name for each in collector.spans))
                await quiet(live)
                await asyncio.sleep(0.2)
        found = {each.place: each for each in collector.spans}
        assert [each.name for each in found["publish a,0"].events] == ["cut"]
        again = found["reroute a,0"]
        assert again.parent == found["publish a,0"].id
        assert again.about["around"] == "fault"
        assert found["hop a,1"].parent == found["publish a,0"].id

    with collecting() as collector:
        run_live(work(collector))


def test_copy_that_comes_again_has_a_span_of_its_own_and_is_delivered_once():
    async def work(collector: Collector) -> None:
        configuration = overlay(line(3), Algorithm.TNR, tracing=tracing(collector))
        async with ready(configuration) as live:
            async with subscribed(live, ("far", at(live, "c"))) as (stream,):
                # What a channel does where an acknowledgement is late: it sends again.
                sender = at(live, "a")
                again: list[Any] = []
                number = sender.posting.channels.sender.number

                def kept(batch: Any, now_ns: int) -> Any:
                    numbered = number(batch, now_ns)
                    again.extend(numbered)
                    return numbered

                sender.posting.channels.sender.number = kept
                async with client_of(sender) as writer:
                    await writer.publish({"n": 1, "traceparent": TRACEPARENT})
                    await anext(stream)
                    sender.effects.carry_out(sender.core.send_again(again, time.monotonic_ns()))
                    sender.effects.flush()
                await until(lambda: of("hop c,0", collector.spans)[1:])
                await asyncio.sleep(0.2)
                spans = list(collector.spans)
        assert len({each.id for each in spans}) == len(spans)
        (publish,), resends = of("publish a,0", spans), of("resend a,0", spans)
        hops, ends = of("hop b,0", spans), of("hop c,0", spans)
        assert len(resends) >= 1  # a busy machine adds some of its own
        assert len(hops) == len(ends) == 1 + len(resends)
        assert {each.parent for each in [*resends, *hops]} == {publish.id}
        assert {each.parent for each in ends} == {hops[0].id}
        (delivery,) = of("deliver c,0", spans)
        assert delivery.parent == ends[0].id

    with collecting() as collector:
        run_live(work(collector))


def test_durable_subscription_that_is_read_again_has_a_delivery_for_each_time(tmp_path: Path):
    async def work(collector: Collector) -> None:
        options = {"tracing": tracing(collector), "durability": Durability(str(tmp_path))}
        again = {"durable": "kept", "acks": "manual", "start": "earliest"}
        async with ready(overlay(line(2), Algorithm.TNR, **options)) as live:
            async with client_of(at(live, "b"), client_id="far") as reader:
                async with reader.subscribe("n >= 0", durable="kept", acks="manual") as stream:
                    await tables_hold(live, 1)
                    async with client_of(at(live, "a")) as writer:
                        await writer.publish({"n": 1, "traceparent": TRACEPARENT})
                    await anext(stream)
                    await heard(collector, 3)
                async with reader.subscribe("n >= 0", **again) as stream:
                    await anext(stream)
                    await until(lambda: len(collector.spans) >= 4)
        found = {each.place: each for each in but_resends(collector.spans)}
        reads = [each for each in collector.spans if each.name == "deliver"]
        assert len({each.id for each in reads}) == len(reads) >= 2
        assert {each.parent for each in reads} == {found["hop b,0"].id}
        assert {(each.about["durable"], each.about["position"]) for each in reads} == {("kept", 1)}
        assert found["publish a,0"].parent == ROOT
        assert [each.name for each in found["publish a,0"].events] == ["sent"]

    with collecting() as collector:
        run_live(work(collector))


def test_trace_on_disk_is_what_it_is_without_spans(tmp_path: Path):
    """Both recorders are told all that happens, each as if it were alone."""

    async def rows(folder: Path, options: SpanOptions) -> dict[str, list[dict[str, Any]]]:
        scot = line(3)
        configuration = overlay(scot, Algorithm.TNR, tracing=options, delivery=PLAIN)
        async with running(configuration, trace=TraceOptions(folder, Level.FULL)) as live:
            for each in live.values():
                await each.ready.wait()
            async with subscribed(live, ("far", at(live, "c"))) as (stream,):
                async with client_of(at(live, "a"), client_id="pub") as writer:
                    for number in range(20):
                        more = {"traceparent": TRACEPARENT} if number % 2 else {}
                        await writer.publish({"n": number} | more)
                for _ in range(20):
                    await anext(stream)
        found = {}
        for table in ("publications", "deliveries", "ims", "links", "subscriptions"):
            paths = [folder / each.short / f"{table}.parquet" for each in scot.brokers]
            found[table] = [
                {key: value for key, value in row.items() if key in WHAT}
                for path in paths
                for row in pq.read_table(path).to_pylist()
            ]
        return found

    async def work(collector: Collector) -> None:
        plain = await rows(tmp_path / "plain", SpanOptions())
        beside = await rows(tmp_path / "beside", tracing(collector))
        assert beside == plain
        assert [len(plain[table]) for table in ("publications", "deliveries")] == [20, 20]
        assert len(collector.spans) == 10 * 4

    with collecting() as collector:
        run_live(work(collector))


# Commands


def test_overlay_of_several_processes_leaves_one_tree_and_counts_its_spans(shell: Shell):
    with collecting() as collector:
        words = "--processes", "2", "--metrics-port", str(free_ports(2)[0])
        config = shell.config(SMALL + "[tracing]\ninterval_s = 0.05\n")
        with shell.up("--config", config, *words, "--tracing-endpoint", collector.endpoint) as up:
            with connect_sync(up.url("b,1"), client_id="far") as reader:
                with reader.subscribe("n = 1") as stream:
                    reader.settled()
                    with connect_sync(up.url("a,0")) as writer:
                        writer.publish({"n": 1, "traceparent": TRACEPARENT})
                    next(iter(stream))
            found = but_resends(collector.wait_for(lambda spans: len(but_resends(spans)) >= 4))
            places = tree(found)
            assert places["publish a,0"] == "publisher"
            assert places["hop b,1"] in {"hop a,1", "hop b,0"}
            assert places["deliver b,1 to far"] == "hop b,1"

            def all_counted() -> bool:
                told = [scrape(url) for url in up.state["metrics"]]
                taken = sum(each.value("octopis_spans_exported_total") for each in told)
                return taken == len(collector.spans)

            wait_until(all_counted)
            scrapes = [scrape(url) for url in up.state["metrics"]]
            assert {each.value("octopis_spans_dropped_total") for each in scrapes} == {0}
            assert up.stop()[0] == 0


def test_endpoint_that_makes_no_sense_is_said_and_nothing_is_started(shell: Shell):
    done = shell.run("overlay", "up", "--port", "0", "--tracing-endpoint", "localhost:4318")
    assert done.returncode == 2
    assert "tracing.endpoint is the address of a collector" in done.stderr
    assert "'localhost:4318'" in done.stderr
    assert "Traceback" not in done.stderr
    assert shell.is_empty()


def test_overlay_without_tracing_does_not_load_the_libraries(shell: Shell):
    with shell.up("--config", shell.config(), "--processes", "1"):
        (worker,) = shell.workers()
        loaded = Path(f"/proc/{worker}/maps").read_text(encoding="utf-8")
        assert "google/_upb" not in loaded
    with collecting() as collector:
        words = "--processes", "1", "--tracing-endpoint", collector.endpoint
        with shell.up("--config", shell.config(), *words):
            (worker,) = shell.workers()
            loaded = Path(f"/proc/{worker}/maps").read_text(encoding="utf-8")
            assert "google/_upb" in loaded
