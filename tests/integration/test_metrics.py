"""Metrics of real broker processes, scraped over HTTP and read by Prometheus' own parser."""

import asyncio
import os
import re
import signal
import socket
import time
import urllib.error
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import octopis
from octopis.benchmarks.processes import free_ports
from support.overlay_command import SMALL, Shell, wait_until
from support.scrapes import fetch, scrape

CLIENTS = 1_000
DURABLE_SLOW = """
[topology]
name = "slow"
[acyclic_factor]
edges = [["a", "b"]]
[connectivity_factor]
clusters = 2
[[links.shape]]
source = "a,0"
target = "b,0"
bandwidth_bytes_per_s = 3000.0
"""


def place(port: int) -> tuple[str, int]:
    return "127.0.0.1", port


def metrics_in(count: int) -> list[str]:
    """Return the flags for so many processes, each of which shows its metrics at a free port."""
    return ["--processes", str(count), "--metrics-port", str(free_ports(count)[0])]


def test_every_process_tells_of_its_brokers_and_the_state_says_where(shell: Shell):
    with shell.up("--config", shell.config(), *metrics_in(2)) as up:
        for share, url in zip(up.state["processes"], up.state["metrics"], strict=True):
            found = scrape(url)
            ready = {
                dict(labels)["broker"] for name, labels in found.series if name == "octopis_ready"
            }
            assert ready == set(share)
            links = [dict(labels) for name, labels in found.series if name == "octopis_link_up"]
            assert {(each["broker"], each["kind"]) for each in links} == {
                (broker, kind) for broker in share for kind in ("aCOL", "iCOL")
            }
            assert found.value("octopis_link_up") == 2 * len(share)
            assert found.types["octopis_build"] == "info"
            assert re.search(r'octopis_build_info\{algorithm="tnr",level="memory"', found.text)
        assert up.stop()[0] == 0


def test_what_is_published_and_delivered_is_told_with_its_delays(shell: Shell):
    async def work(source: str, target: str) -> None:
        async with octopis.connect(target) as reader, reader.subscribe("n >= 0") as stream:
            await reader.settled()
            async with octopis.connect(source) as writer:
                for number in range(200):
                    await writer.publish({"n": number})
            for _ in range(200):
                await anext(stream)

    with shell.up("--config", shell.config(), *metrics_in(1)) as up:
        asyncio.run(work(up.url("a,0"), up.url("b,1")))
        (url,) = up.state["metrics"]
        found = scrape(url)
    assert found.value("octopis_notifications_published_total", broker="a,0") == 200
    assert found.value("octopis_deliveries_total", broker="b,1") == 200
    assert found.value("octopis_messages_total", broker="a,0", kind="notification") == 200
    assert found.value("octopis_link_sent_messages_total", broker="a,0") >= 200
    assert found.value("octopis_link_sent_bytes_total", broker="a,0") > 200 * 20
    assert found.value("octopis_matching_seconds_count", broker="a,0") >= 1
    assert found.value("octopis_delivery_delay_seconds_count", broker="b,1") >= 1
    assert 0 < found.value("octopis_delivery_delay_seconds_sum", broker="b,1") < 60
    assert found.value("octopis_notifications_dropped_total") == 0


def test_series_stay_as_they_are_whatever_clients_and_subscriptions_come(shell: Shell):
    async def work(url: str, target: str) -> list[Any]:
        async def publish() -> None:
            async with octopis.connect(target) as writer:
                await writer.publish_many({"n": number} for number in range(300))

        async with octopis.connect(target) as first, first.subscribe("n >= 0"):
            await first.settled()
            await publish()
            found = [await asyncio.to_thread(scrape, url)]
            clients = [octopis.connect(target) for _ in range(CLIENTS)]
            for start in range(0, CLIENTS, 100):
                await asyncio.gather(*(each.open() for each in clients[start : start + 100]))
            streams = [each.subscribe(f"n >= {n}") for n, each in enumerate(clients)]
            await asyncio.gather(*(each.open() for each in streams))
            await publish()
            found.append(await asyncio.to_thread(scrape, url))
            await asyncio.gather(*(each.close() for each in clients))
        return found

    with shell.up("--config", shell.config(), *metrics_in(1)) as up:
        before, after = asyncio.run(work(up.state["metrics"][0], up.url("a,0")))
    assert after.value("octopis_clients", broker="a,0") >= CLIENTS
    assert after.value("octopis_client_subscriptions", broker="a,0") >= CLIENTS
    assert after.series == before.series
    assert len(after.text) < 1.2 * len(before.text)


def test_copies_that_go_around_are_told_by_link_and_reason(shell: Shell):
    async def work(source: str, target: str) -> None:
        async with octopis.connect(target) as reader, reader.subscribe("n >= 0") as stream:
            await reader.settled()
            async with octopis.connect(source) as writer:
                for number in range(300):
                    await writer.publish({"n": number}, payload=b"x" * 200)
            for _ in range(300):
                await anext(stream)

    with shell.up(
        "--config", shell.config(DURABLE_SLOW), *metrics_in(1), "--durable", "kept"
    ) as up:
        asyncio.run(work(up.url("a,0"), up.url("b,0")))
        found = scrape(up.state["metrics"][0])
        (status,) = [each for broker, each in up.statuses().items() if broker == "a,0"]
    about = {"broker": "a,0", "neighbour": "a,1", "kind": "iCOL"}
    around = found.value("octopis_link_around_copies_total", **about, reason="overload")
    assert around > 0
    assert found.value("octopis_link_around_copies_total", **about, reason="fault") == 0
    link = status["links"]["a,1"]
    assert (link["around_overload"], link["around_fault"]) == (around, 0)
    assert link["sent"] >= around
    assert found.value("octopis_store_sync_seconds_count", broker="a,0") > 0
    assert found.value("octopis_store_bytes", broker="a,0") > 0
    assert found.value("octopis_store_failed") == found.value("octopis_store_full") == 0


def test_killed_process_shows_its_metrics_again_at_the_same_place(shell: Shell):
    with shell.up("--config", shell.config(), *metrics_in(2)) as up:
        before = [scrape(url) for url in up.state["metrics"]]
        workers = shell.workers()
        os.kill(workers[0], signal.SIGKILL)
        wait_until(lambda: len(shell.workers()) == 2 and shell.workers() != workers)

        def is_back() -> bool:
            try:
                after = [scrape(url) for url in up.state["metrics"]]
            except OSError:
                return False
            return all(each.value("octopis_link_up") == 4 for each in after)

        wait_until(is_back)
        after = [scrape(url) for url in up.state["metrics"]]
        assert [each.series for each in after] == [each.series for each in before]
        started = [each.value("octopis_start_time_seconds") for each in (*before, *after)]
        assert sum(a > b for a, b in zip(started[2:], started[:2], strict=True)) == 1
        assert sum(each.value("octopis_link_reconnects_total") for each in after) > 0


def test_taken_port_is_said_and_nothing_is_started(shell: Shell):
    words = metrics_in(2)
    second = int(words[-1]) + 1
    with socket.create_server(place(second)):
        config = shell.config()
        done = shell.run("overlay", "up", "--config", config, "--port", "0", *words)
    assert done.returncode == 1
    assert f"metrics cannot be shown at 127.0.0.1:{second}" in done.stderr
    assert "choose another port with --metrics-port" in done.stderr
    assert "Traceback" not in done.stderr
    wait_until(shell.is_empty)


def test_place_that_others_reach_is_refused_unless_the_file_says_insecure(shell: Shell):
    port = free_ports(1)[0]
    open_to_all = f'{SMALL}[metrics]\nhost = "0.0.0.0"\nport = {port}\n'
    done = shell.run("overlay", "up", "--config", shell.config(open_to_all), "--port", "0")
    assert done.returncode == 2
    assert f"metrics would be shown at 0.0.0.0:{port}, where other machines can read" in done.stderr
    config = shell.config("insecure = true\n" + open_to_all)
    with shell.up("--config", config, "--processes", "1"):
        assert scrape(f"http://127.0.0.1:{port}/metrics").value("octopis_ready") == 4


def test_one_broker_in_the_foreground_shows_its_metrics(shell: Shell):
    brokers = free_ports(5)
    places = [
        f'[brokers."{name}"]\nport = {port}\n'
        for name, port in zip(("a,0", "a,1", "b,0", "b,1"), brokers, strict=False)
    ]
    config = shell.config(SMALL + "".join(places))
    words = ["--config", config, "--broker", "a,0", "--metrics-port", str(brokers[4])]
    process = shell.start("broker", "run", *words)
    assert process.stderr is not None
    url = ""
    while not url:
        line = process.stderr.readline()
        assert line, "the broker has ended"
        url = line.partition("metrics are at ")[2].strip()
    found = scrape(url)
    assert found.value("octopis_link_up", broker="a,0") == 0
    assert found.value("octopis_unheard_brokers", broker="a,0") > 0
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0


def test_half_requests_and_scrapers_that_never_read_hold_up_nobody(shell: Shell):
    async def round_trip_s(url: str) -> float:
        async with octopis.connect(url) as client, client.subscribe("n = 1") as stream:
            await client.settled()
            begun = time.monotonic()
            for _ in range(50):
                await client.publish({"n": 1})
                await anext(stream)
            return time.monotonic() - begun

    with shell.up("--config", shell.config(), *metrics_in(1)) as up, ExitStack() as stack:
        (url,) = up.state["metrics"]
        port = int(url.rsplit(":", 1)[1].partition("/")[0])
        (worker,) = shell.workers()
        for number in range(100):
            each = stack.enter_context(socket.create_connection(place(port)))
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.sendall(b"GET /metrics HTTP/1.1\r\n" + (b"\r\n" if number % 2 else b"Host: "))
        begun = time.monotonic()
        assert scrape(url).value("octopis_ready") == 4
        assert time.monotonic() - begun < 5
        assert asyncio.run(round_trip_s(up.url("b,1"))) < 5
        threads = len(list(Path(f"/proc/{worker}/task").iterdir()))
        assert threads < 40, "requests that never end must not pile up"
        log = shell.state.glob("*/process-0.log")
        assert all("Traceback" not in each.read_text(encoding="utf-8") for each in log)
        assert up.stop()[0] == 0


@pytest.mark.parametrize(("path", "status"), [("/else", 404), ("/metrics/else", 404)])
def test_other_pages_are_not_there(shell: Shell, path: str, status: int):
    with shell.up("--config", shell.config(), *metrics_in(1)) as up:
        (url,) = up.state["metrics"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetch(url.removesuffix("/metrics") + path)
        assert refused.value.code == status
        with refused.value:
            assert b"the metrics are at /metrics" in refused.value.read()
        assert "# TYPE octopis_ready gauge" in fetch(url, accept="text/plain")
