"""The overlay that the scenario is played through: real broker processes, one link slowed down."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from octopis.demo.slowed_link import SlowedLink
from octopis.live.configuration import OverlayConfiguration, Shape
from octopis.live.document import NamedOverlay
from octopis.live.document_text import format_overlay
from octopis.live.spread import cores
from octopis.live.state import OverlayState
from octopis.live.supervisor import OverlayOrder, Supervisor
from octopis.routing import Algorithm
from octopis.topology import NamedTopology
from octopis.trace import Level


def overlay_document(topology: NamedTopology, link: SlowedLink, algorithm: Algorithm) -> str:
    """Return the overlay's document; it differs in nothing but the algorithm."""
    configuration = OverlayConfiguration(
        scot=topology.scot,
        algorithm=algorithm,
        shapes={(link.source, link.target): Shape(bandwidth=link.bytes_per_s)},
    )
    return format_overlay(NamedOverlay(topology, configuration))


def overlay_order(document: str, folder: Path) -> OverlayOrder:
    """Return the order for an overlay at ports that are free, which leaves its links' counts.

    Its state is in a folder of its own, so that `octopis pub` and others here do not find it.
    """
    return OverlayOrder(
        configuration=document,
        state=str((folder / "state").absolute()),
        processes=cores(),
        first_port=0,
        trace=str((folder / "trace").absolute()),
        level=Level.SUMMARY,
    )


@asynccontextmanager
async def overlay_up(order: OverlayOrder) -> AsyncIterator[OverlayState]:
    """Run an overlay meanwhile; whatever happens, none of its processes is left.

    Raises OperationFailed where it does not start, or one of its processes ends by itself.
    """
    supervisor = Supervisor(order)
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
