import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from octopis.core.filters import dialects, sql
from octopis.overlay import process
from octopis.overlay.deployment import address_of, open_listeners, planned
from octopis.overlay.process import Child, ProcessOrder
from octopis.overlay.settings import NamedOverlay, format_overlay, parse_overlay
from octopis.trace import Level
from support.live import run_live, until
from support.overlay_command import SMALL


def with_child(tmp_path: Path, work) -> None:
    """Run work(child) with one process that runs all brokers."""

    async def whole() -> None:
        overlay = parse_overlay(SMALL, "small")
        listeners = open_listeners(planned(overlay.configuration, 0))
        places = {broker: address_of(listener) for broker, listener in listeners.items()}
        path = tmp_path / "overlay.toml"
        placed = NamedOverlay(overlay.topology, overlay.configuration.at(places))
        path.write_text(format_overlay(placed), encoding="utf-8")
        child = Child(0, list(listeners), tmp_path / "log")
        numbers = {broker.short: listener.fileno() for broker, listener in listeners.items()}
        await child.start(ProcessOrder(str(path), numbers), listeners.values())
        for listener in listeners.values():
            listener.close()
        try:
            await work(child)
        finally:
            child.kill()
            await child.ended()

    run_live(whole())


def test_process_says_that_it_is_ready_drains_and_ends_when_told(tmp_path: Path):
    async def work(child: Child) -> None:
        await child.ready.wait()
        child.drain()
        await until(lambda: child.empty_reports >= 2)
        assert child.queued == 0
        await child.end(10.0)
        assert await child.ended() == 0

    with_child(tmp_path, work)


def test_end_before_it_is_ready_is_orderly_too(tmp_path: Path):
    async def work(child: Child) -> None:
        await child.end(20.0)
        assert await child.ended() == 0

    with_child(tmp_path, work)


def test_fault_names_the_process_its_brokers_the_signal_and_the_log(tmp_path: Path):
    async def work(child: Child) -> None:
        await child.ready.wait()
        child.kill()
        said = child.fault(await child.ended())
        assert said.startswith(
            "process 0 with the brokers a,0, a,1, b,0, b,1 ended by signal 9 (SIGKILL)"
        )
        assert "is ready: it has heard of all neighbours" in said
        await asyncio.wait_for(child.end(1.0), 5)

    with_child(tmp_path, work)


def started(
    path: Path, order: ProcessOrder, listeners: list[int], program: str = ""
) -> "subprocess.Popen[bytes]":
    code = ["-c", program] if program else ["-m", "octopis.overlay.process"]
    command = [sys.executable, "-P", *code]
    with (path / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, msgspec.json.encode(order).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=listeners,
        )


def test_process_runs_its_brokers_and_stops_when_its_orders_end(tmp_path: Path):
    overlay = parse_overlay(SMALL, "small")
    listeners = open_listeners(planned(overlay.configuration, 0))
    document = tmp_path / "overlay.toml"
    document.write_text(format_overlay(overlay), encoding="utf-8")
    numbers = {broker.short: listener.fileno() for broker, listener in listeners.items()}
    order = ProcessOrder(str(document), numbers, str(tmp_path / "trace"), Level.SUMMARY)
    with started(tmp_path, order, list(numbers.values())) as process:
        for listener in listeners.values():
            listener.close()
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"drain\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"queued 0\n"
        process.stdin.close()
        assert process.wait(timeout=20) == 0
    assert (tmp_path / "log").read_text(encoding="utf-8").count("has stopped") == 4
    assert len(list((tmp_path / "trace").glob("*/run.json"))) == 4


BROKEN = """
from octopis.broker.broker import LiveBroker
from octopis.overlay.process import main

async def broken(broker):
    await broker.ready.wait()
    raise ZeroDivisionError(f"a fault of {broker.id}")

LiveBroker._ticks = broken
main()
"""


def test_process_whose_broker_does_not_work_any_more_ends_so_that_it_starts_anew(tmp_path: Path):
    overlay = parse_overlay(SMALL, "small")
    listeners = open_listeners(planned(overlay.configuration, 0))
    document = tmp_path / "overlay.toml"
    document.write_text(format_overlay(overlay), encoding="utf-8")
    numbers = {broker.short: listener.fileno() for broker, listener in listeners.items()}
    order = ProcessOrder(str(document), numbers)
    with started(tmp_path, order, list(numbers.values()), BROKEN) as process:
        for listener in listeners.values():
            listener.close()
        assert process.wait(timeout=20) == 1
        assert process.stdout is not None
        assert b"refused" not in process.stdout.read()
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert "does not work any more" in log
    assert "ZeroDivisionError: a fault of" in log
    assert log.count("has stopped") == 4


def test_document_that_makes_no_sense_ends_it_with_one_clear_line(tmp_path: Path):
    (tmp_path / "overlay.toml").write_text("[rooting]\n", encoding="utf-8")
    order = ProcessOrder(str(tmp_path / "overlay.toml"), {})
    with started(tmp_path, order, []) as process:
        assert process.wait(timeout=20) == 2
    (line,) = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert "did you mean 'routing'" in line


def test_language_of_filters_is_loaded_before_any_broker_takes_connections(
    monkeypatch: pytest.MonkeyPatch,
):
    loaded: list[int] = []

    async def serve(_order: ProcessOrder) -> None:
        loaded.append(sql._parser.cache_info().currsize)

    for name in ("raise_file_limit", "spare_the_collector"):
        monkeypatch.setattr(process, name, lambda: None)
    monkeypatch.setattr(process.logging, "basicConfig", lambda **_: None)
    monkeypatch.setattr(process, "_serve", serve)
    order = msgspec.json.encode(ProcessOrder("overlay.toml", {})).decode()
    monkeypatch.setattr(process.sys, "argv", ["process", order])
    dialects._parsed_short.cache_clear()
    sql._parser.cache_clear()
    process.main()
    assert loaded == [1]
