"""What a process hears from the one that started it, and says to it: words through pipes.

Standard input is a pipe that only the starter holds; its end is the order to stop, and also comes
when the starter is gone, however it ended.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Mapping


def hear_orders(
    stop: asyncio.Event, latest_s: float, orders: Mapping[bytes, asyncio.Event] | None = None
) -> None:
    """Hear orders from now on, and set the event of each.

    The end of orders sets `stop`. A process that has not ended within `latest_s` then ends itself.
    """
    about = asyncio.get_running_loop(), stop, latest_s, orders or {}
    threading.Thread(target=_hear, args=about, daemon=True).start()


def _hear(
    loop: asyncio.AbstractEventLoop,
    stop: asyncio.Event,
    latest_s: float,
    orders: Mapping[bytes, asyncio.Event],
) -> None:
    """Pass orders on; a thread of its own hears them even where the event loop is stuck."""
    # The descriptor itself: at exit, nobody may wait for a lock that this thread holds.
    while said := os.read(sys.stdin.fileno(), 64):
        for word, event in orders.items():
            if word in said:
                loop.call_soon_threadsafe(event.set)
    with contextlib.suppress(RuntimeError):  # the loop is closed: the end is near anyway
        loop.call_soon_threadsafe(stop.set)
    threading.Event().wait(latest_s)
    os._exit(1)


def say(line: str) -> None:
    """Say a line to the starter."""
    with contextlib.suppress(OSError):  # the starter is gone, and the end of orders says so, too
        os.write(sys.stdout.fileno(), f"{line}\n".encode())
