"""One round: the scenario through a live overlay under one algorithm.

The overlay is one of real broker processes with one link slowed down, started for the round and
stopped after it.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from octopis.broker.settings import OverlayConfiguration, Shape
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import NamedTopology
from octopis.demo.pace import Pace, pace_of
from octopis.demo.watching import OverlayMoment, Watcher
from octopis.demo.workload import SPEED, SlowedLink, direction
from octopis.errors import OperationFailed
from octopis.overlay.player import Play, Played
from octopis.overlay.registry import OverlayState
from octopis.overlay.settings import NamedOverlay, format_overlay
from octopis.overlay.supervisor import OverlayOrder, Supervisor, cores
from octopis.scenario.folder import Scenario
from octopis.trace import Level

_SUBSCRIBERS_EACH = 20
"""There is a process for so many subscribers, but never more than cores."""


def overlay_document(topology: NamedTopology, link: SlowedLink, algorithm: Algorithm) -> str:
    """Return the overlay's document; it differs in nothing but the algorithm."""
    configuration = OverlayConfiguration(
        scot=topology.scot,
        routing=RoutingOptions(algorithm),
        shapes={(link.source, link.target): Shape(link.bytes_per_s)},
    )
    return format_overlay(NamedOverlay(topology, configuration))


def overlay_order(document: str, folder: Path, processes: int) -> OverlayOrder:
    """Return the order for an overlay at ports that are free, which leaves a trace.

    Its state is in a folder of its own, so that `octopis pub` and others here do not find it.
    """
    return OverlayOrder(
        configuration=document,
        state=str((folder / "state").absolute()),
        processes=processes,
        first_port=0,
        trace=str((folder / "trace").absolute()),
        level=Level.DELIVERIES,
    )


@asynccontextmanager
async def overlay_up(supervisor: Supervisor) -> AsyncIterator[OverlayState]:
    """Run an overlay meanwhile; whatever happens, none of its processes is left.

    Raises OperationFailed where it does not start, or fails for good.
    """
    ready: asyncio.Future[OverlayState] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(supervisor.run(ready.set_result))
    either: set[asyncio.Future[Any]] = {running, ready}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
        yield ready.result()
        supervisor.stop()
        await running
    except BaseException:
        # Told twice, it lets go of what waits in queues: nobody wants it any more.
        supervisor.stop()
        supervisor.stop()
        await running  # where a process has failed, this says so, and the reason is the better one
        raise


@dataclass(frozen=True)
class Round:
    """What came of a round."""

    algorithm: Algorithm
    played: Played
    snapshots: list[OverlayMoment]
    longest_queue: int
    longest_link: str
    over_slowed: int
    """Notifications that went over the slowed link."""

    pace: Pace

    @property
    def cases(self) -> dict[str, int]:
        """How often each case of dynamic routing came up."""
        return self.snapshots[-1].cases

    @property
    def publishers_waited(self) -> bool:
        """Whether a backpressure notice was seen, which lets publishers wait."""
        return any(each.publishers_wait for each in self.snapshots)

    def slowed_queue(self) -> list[tuple[float, int]]:
        """Return the slowed link's queue length by seconds since publishing began."""
        begin_ns = self.played.begin_ns
        return [((each.seen_ns - begin_ns) / 1e9, each.slowed_queue) for each in self.snapshots]


async def play_round(  # noqa: PLR0913, PLR0917 - a round is all of this
    scenario: Scenario,
    link: SlowedLink,
    algorithm: Algorithm,
    folder: Path,
    on_moment: Callable[[OverlayMoment], None] = lambda _: None,
    door: socket.socket | None = None,
) -> Round:
    """Start an overlay, play the scenario through it, stop it, and return what came of it.

    Where there is a `door`, a gateway listens there meanwhile.
    """
    document = overlay_document(scenario.topology, link, algorithm)
    watcher = Watcher(link, on_moment)
    # A few clients do not keep several processes busy.
    processes = min(cores(), -(-len(scenario.subscribers) // _SUBSCRIBERS_EACH))
    supervisor = Supervisor(overlay_order(document, folder, processes), door)
    async with overlay_up(supervisor) as state:
        played = await Play(scenario, state.addresses, speed=SPEED, watch=watcher.see).run()
    queues, carried = read_links(folder / "trace")
    longest = max(queues, key=lambda name: queues[name])
    return Round(
        algorithm,
        played,
        watcher.snapshots,
        queues[longest],
        longest,
        carried[link.short],
        pace_of(folder / "trace", watcher.snapshots),
    )


def read_links(trace: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Return each link's longest queue, and the notifications it carried, as its broker counted."""
    longest, carried = {}, {}
    for path in sorted(trace.glob("*/links.parquet")):
        for row in pq.read_table(path).to_pylist():
            name = direction(row["source"], row["target"])
            longest[name], carried[name] = row["queue_length_max"], row["notification_ims"]
    if not longest:
        raise OperationFailed(f"the brokers have left no counts of their links in {trace}")
    return longest, carried
