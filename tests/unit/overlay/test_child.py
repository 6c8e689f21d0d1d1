import asyncio
from pathlib import Path

from octopis.overlay.deployment import address_of, open_listeners, planned
from octopis.overlay.process import Child, ProcessOrder
from octopis.overlay.settings import NamedOverlay, format_overlay, parse_overlay
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
        await child.start(ProcessOrder(str(path), numbers), listeners)
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
