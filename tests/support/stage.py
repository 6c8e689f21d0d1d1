"""An overlay of 18 brokers with disks and a gateway, for the dashboard.

One broker and the gateway are processes of their own, to be killed; the others run in a thread.
"""

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from queue import Queue

import uvloop

from octopis.client.client import Client, connect
from octopis.overlay.deployment import running
from octopis.overlay.settings import NamedOverlay, parse_overlay
from support.overlay_command import Shell
from support.processes import free_ports

VICTIM = "c,1"
SLEEPER = "d,0"
"""Here a client subscribes to "test = 'sleep'", and reads nothing."""

ARCHIVE = "archive"
"""A durable subscription to "test = 'keep'" that nobody reads."""

SLOWED = ("b,0", "e,0")
_REGIONS, _CLUSTERS = "abcdef", range(3)
_BROKERS = [f"{region},{cluster}" for region in _REGIONS for cluster in _CLUSTERS]
_OVERLAY = f"""
[topology]
name = "figure-3"
[acyclic_factor]
edges = [["a", "b"], ["b", "c"], ["d", "e"], ["e", "f"], ["b", "e"]]
[connectivity_factor]
clusters = 3
[routing]
algorithm = "tnr"
[limits]
redial_s_max = 0.2
drain_s = 0.5
sync_s = 20.0
[client_queues]
capacity = 200
high_water = 100
[[links.shape]]
source = "{SLOWED[0]}"
target = "{SLOWED[1]}"
bandwidth_bytes_per_s = 4000.0
"""
_PER_BATCH, _EVERY_S = 10, 0.1


class Stage:
    """What runs: an overlay, subscribers, a publisher that can be told to publish, a gateway."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self._gateway_port, *ports = free_ports(1 + len(_BROKERS))
        self.ports = dict(zip(_BROKERS, ports, strict=True))
        places = (f'[brokers."{name}"]\nport = {port}\n' for name, port in self.ports.items())
        disk = f"[durability]\nfolder = {str(shell.folder / 'kept')!r}\n"
        self.config = shell.config(_OVERLAY + disk + "".join(places))
        self.url = f"http://127.0.0.1:{self._gateway_port}"
        self.publishes = threading.Event()
        self.victim = self.start_victim()

    def start_victim(self) -> "subprocess.Popen[str]":
        """Start the broker that is a process of its own."""
        words = ("broker", "run", "--config", self.config, "--broker", VICTIM)
        self.victim = self.shell.start(*words, stderr=subprocess.DEVNULL)
        return self.victim

    def start_gateway(self) -> "subprocess.Popen[str]":
        """Start the gateway, and wait until it serves."""
        words = ("gateway", "run", "--config", self.config, "--port", str(self._gateway_port))
        self.gateway = self.shell.start(*words, stderr=subprocess.DEVNULL)
        assert self.gateway.stdout is not None
        assert self.url in self.gateway.stdout.readline()
        return self.gateway

    def overlay(self) -> NamedOverlay:
        """Return the overlay's document."""
        path = self.shell.folder / self.config
        return parse_overlay(path.read_text(encoding="utf-8"), str(path))


@contextmanager
def stage_in(folder: Path) -> Iterator[Stage]:
    """Run everything; end it at the end."""
    shell = Shell(folder)
    stage = Stage(shell)
    found: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Queue()
    thread = threading.Thread(target=uvloop.run, args=(_run(stage, found),))
    thread.start()
    loop, stop = found.get(timeout=60)
    try:
        stage.start_gateway()
        yield stage
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        shell.end()


async def _run(
    stage: Stage, found: "Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event]]"
) -> None:
    stop = asyncio.Event()
    configuration = stage.overlay().configuration
    here = [each for each in configuration.scot.brokers if each.short != VICTIM]
    async with AsyncExitStack() as stack:
        live = await stack.enter_async_context(running(configuration, here))
        for broker in live.values():
            await broker.ready.wait()
        subscribers = [
            asyncio.create_task(_subscribe(stage, name)) for name in ("e,0", "f,0", "f,2")
        ]
        subscribers += [asyncio.create_task(_sleep(stage)), asyncio.create_task(_keep(stage))]
        publisher = asyncio.create_task(_publish(stage))
        found.put((asyncio.get_running_loop(), stop))
        await stop.wait()
        for task in (*subscribers, publisher):
            task.cancel()
        await asyncio.gather(*subscribers, publisher, return_exceptions=True)


def _client(stage: Stage, broker: str, name: str) -> Client:
    return connect(f"octopis://127.0.0.1:{stage.ports[broker]}", client_id=name)


async def _subscribe(stage: Stage, broker: str) -> None:
    async with _client(stage, broker, f"subscriber-{broker}") as client:
        async with client.subscribe("price > 10") as notifications:
            async for _ in notifications:
                pass


async def _sleep(stage: Stage) -> None:
    url = f"octopis://127.0.0.1:{stage.ports[SLEEPER]}"
    async with connect(url, client_id="sleeper", window=4) as client:
        async with client.subscribe("test = 'sleep'"):
            await asyncio.Event().wait()


async def _keep(stage: Stage) -> None:
    async with _client(stage, SLEEPER, "keeper") as client:
        async with client.subscribe("test = 'keep'", durable=ARCHIVE):
            pass


async def _publish(stage: Stage) -> None:
    """Publish more than the slowed link bears, as long as the test says so."""
    async with _client(stage, "a,0", "publisher") as client:
        number = 0
        while True:
            if stage.publishes.is_set():
                batch = range(number, number + _PER_BATCH)
                await client.publish_many({"price": 50, "n": each} for each in batch)
                number += _PER_BATCH
            await asyncio.sleep(_EVERY_S)
