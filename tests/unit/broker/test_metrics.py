"""What is sampled, declared and shown to Prometheus, apart from whole overlays."""

import asyncio
import datetime as dt
import re
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from octopis.benchmarks.processes import free_ports
from octopis.broker.metrics import collector
from octopis.broker.metrics.declared import Kind
from octopis.broker.metrics.delays import EVERY, OLDEST_S, ClientDelays, Delays, Sampled, TimedIndex
from octopis.broker.metrics.families import FAMILIES
from octopis.broker.metrics.server import exposed
from octopis.broker.settings import Metrics
from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex
from octopis.core.routing import Algorithm
from octopis.core.wire.published import Published
from octopis.errors import InvalidConfiguration, OperationFailed
from support.live import client_of, line, overlay, ready, run_live
from support.scrapes import scrape

METRICS = [metric for family in FAMILIES for metric in family.metrics]
LABELS = {label for family in FAMILIES for label in family.labels} | {
    metric.by for metric in METRICS if metric.by
}


# What is sampled


def test_histogram_counts_up_to_and_with_each_bound():
    times = Sampled([1.0, 2.0])
    for seconds in (0.5, 1.0, 1.5, 2.5):
        times.observe(seconds)
    assert (times.counts, times.sum_s) == ([2, 1, 1], 5.5)


def test_one_batch_of_so_many_is_measured_beginning_with_the_first():
    times = Sampled([1.0])
    due = [number for number in range(3 * EVERY) if times.is_due()]
    assert due == [0, EVERY, 2 * EVERY]


def test_timed_index_answers_as_the_plain_one_and_times_one_batch_of_so_many():
    delays = Delays()
    timed, plain = TimedIndex(delays.matching), BitsetIndex[str, str]()
    for index in (timed, plain):
        index.add("s1", parse_filter("x > 1"), "here")
        index.add("s2", parse_filter("x > 2"), "there")
    batch = [{"x": number} for number in range(4)]
    for _ in range(EVERY):
        assert timed.reached(batch) == plain.reached(batch)
        assert timed.matches(batch) == plain.matches(batch)
        both = timed.reached_and_matches(batch, "here")
        assert both == plain.reached_and_matches(batch, "here")
    assert sum(delays.matching.counts) == 3
    assert 0 < delays.matching.sum_s < 1


def published(ago_s: float) -> Published:
    return Published({}, intended_ns=time.time_ns() - round(ago_s * 1e9))


def followed(times: Sampled, ago_s: float, last: int) -> ClientDelays:
    delays = ClientDelays(times)
    delays.latest = published(ago_s)
    delays.queued(last)
    return delays


def test_delay_ends_when_the_delivery_that_is_followed_has_left():
    times = Sampled([0.1, 1.0])
    delays = followed(times, 0.5, last=10)
    delays.left(9)
    assert sum(times.counts) == 0
    delays.left(12)
    delays.left(13)
    assert times.counts == [0, 1, 0]


def test_delivery_that_was_dropped_or_is_replayed_has_no_delay():
    times = Sampled([0.1])
    dropped = followed(times, 0.0, last=10)
    dropped.dropped(10)
    dropped.left(20)
    replayed = followed(Sampled([0.1]), OLDEST_S + 1, last=1)
    replayed.left(1)
    assert sum(times.counts) == sum(replayed._times.counts) == 0


def test_clock_that_is_ahead_gives_no_negative_delay():
    times = Sampled([0.1])
    followed(times, -5.0, last=1).left(1)
    assert (times.counts, times.sum_s) == ([1, 0], 0.0)


# What is declared


def test_names_are_unique_and_as_prometheus_has_them():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"octopis(_[a-z]+)+", metric.name)
        assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_info", "_ms"))
        assert metric.meaning.endswith(".")
        if metric.kind is Kind.HISTOGRAM:
            assert metric.name.endswith("_seconds")


def test_labels_name_nothing_of_which_there_may_be_any_number():
    assert {"broker", "neighbour", "kind", "reason"} == LABELS


# What is shown


def test_metrics_are_shown_to_this_machine_alone_unless_said_otherwise():
    for host in ("0.0.0.0", "192.0.2.1", "::"):  # noqa: S104 - to be refused
        with pytest.raises(InvalidConfiguration, match="other machines can read"):
            overlay(line(1), metrics=Metrics(host, 9740))
        assert overlay(line(1), metrics=Metrics(host, 9740), insecure=True).metrics.is_on
        assert not overlay(line(1), metrics=Metrics(host)).metrics.is_on
    assert overlay(line(1), metrics=Metrics("::1", 9740)).metrics.is_on


def test_without_a_port_nothing_is_measured():
    async def work() -> None:
        async with ready(overlay(line(1), Algorithm.TNR)) as live:
            (broker,) = live.values()
            assert broker.delays is None

    run_live(work())


def test_brokers_that_are_stuck_are_told_as_such_and_answer_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collector, "ANSWER_S", 0.2)
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/metrics"

    async def work() -> None:
        async with ready(overlay(line(1), Algorithm.TNR, metrics=Metrics(port=port))):
            asking = asyncio.get_running_loop().run_in_executor(None, scrape, url)
            time.sleep(1.0)
            with pytest.raises(urllib.error.HTTPError) as refused:
                await asking
            with refused.value as answer:
                assert answer.code == 503
                assert b"have not answered within 0.2 s" in answer.read()
            assert (await asyncio.to_thread(scrape, url)).value("octopis_ready") == 1

    run_live(work())


def test_scrape_waits_no_longer_than_the_loop_and_says_how_long():
    (port,) = free_ports(1)

    async def work() -> None:
        async with ready(overlay(line(1), Algorithm.TNR, metrics=Metrics(port=port))) as live:
            (broker,) = live.values()
            async with client_of(broker) as client:
                await client.publish({"n": 1})
                url = f"http://127.0.0.1:{port}/metrics"
                asking = asyncio.get_running_loop().run_in_executor(None, scrape, url)
                await asyncio.sleep(0)
                time.sleep(0.3)
                found = await asking
                assert 0 < found.value("octopis_scrape_wait_seconds") < 2
                assert found.value("octopis_notifications_published_total") == 1

    run_live(work())


def test_taken_port_is_a_clear_error_and_leaves_nothing():
    (port,) = free_ports(1)
    configuration = overlay(line(1), Algorithm.TNR, metrics=Metrics(port=port))

    async def work() -> None:
        async with ready(configuration):
            with pytest.raises(OperationFailed, match=f"cannot be shown at 127.0.0.1:{port}"):
                async with ready(configuration):
                    pass
        async with ready(configuration):
            pass

    run_live(work())


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate of 127.0.0.1's own, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    places = folder / "certificate.pem", folder / "key.pem"
    places[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    places[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, plain))
    return places


def test_with_tls_only_who_can_prove_who_he_is_gets_an_answer(tmp_path: Path):
    proof, key = certificate(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(proof, key)
    server.load_verify_locations(proof)
    server.verify_mode = ssl.CERT_REQUIRED
    known = ssl.create_default_context(cafile=str(proof))
    stranger = ssl.create_default_context(cafile=str(proof))
    known.load_cert_chain(proof, key)
    (port,) = free_ports(1)

    def get(context: ssl.SSLContext) -> str:
        url = f"https://localhost:{port}/metrics"
        with urllib.request.urlopen(url, timeout=10, context=context) as answer:
            return str(answer.read())

    async def work() -> None:
        configuration = overlay(line(1), Algorithm.TNR, metrics=Metrics(port=port))
        async with exposed(configuration, {}, server):
            assert "octopis_build_info" in await asyncio.to_thread(get, known)
            with pytest.raises(OSError, match=r"(?i)certificate required|closed|reset|EOF"):
                await asyncio.to_thread(get, stranger)
            assert "octopis_build_info" in await asyncio.to_thread(get, known)

    run_live(work())
