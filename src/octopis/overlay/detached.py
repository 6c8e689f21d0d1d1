"""An overlay that goes on when the command that started it has ended.

The starter writes the order as one line of JSON to standard input, reads one line of JSON (the
state, or why it failed), and writes "stay". Where it goes away before that word, the overlay stops:
nobody would know of it.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import uvloop

from octopis.errors import InvalidConfiguration, OctopisError, OperationFailed
from octopis.overlay.registry import OverlayState
from octopis.overlay.supervisor import OverlayOrder, Supervisor

LOG_FILE = "overlay.log"


class StartAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the start went."""

    state: OverlayState | None = None
    error: str = ""
    status: int = 1


def start_detached(order: OverlayOrder) -> OverlayState:
    """Start an overlay in the background, and return its state when it is ready.

    Raises what the overlay's start raises. Where this is interrupted, the overlay is stopped.
    """
    command = [sys.executable, "-P", "-m", "octopis.overlay.detached"]
    with subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(order) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BaseException:
            process.stdin.close()
            process.wait()
            raise
        if not line:
            raise OperationFailed("the overlay's process ended before it was ready")
        answer = msgspec.json.decode(line, type=StartAnswer)
        if answer.state is None:
            kind = InvalidConfiguration if answer.status == 2 else OperationFailed
            raise kind(answer.error)
        process.stdin.write(b"stay\n")
        process.stdin.flush()
        process.returncode = 0  # it goes on without us: there is nothing to wait for
    return answer.state


def main() -> None:
    """Run the overlay that standard input asks for."""
    orders = sys.stdin.fileno()
    text = b""
    while not text.endswith(b"\n"):
        more = os.read(orders, 2**16)
        if not more:
            return
        text += more
    uvloop.run(_run(msgspec.json.decode(text, type=OverlayOrder), orders))


async def _run(order: OverlayOrder, orders: int) -> None:
    supervisor = Supervisor(order)
    supervisor.stop_at_signals()
    loop = asyncio.get_running_loop()
    started: list[OverlayState] = []

    def hear() -> None:
        if b"stay" not in os.read(orders, 64):
            with contextlib.suppress(RuntimeError):  # the loop is closed: it has stopped already
                loop.call_soon_threadsafe(supervisor.stop)

    def ready(state: OverlayState) -> None:
        started.append(state)
        _say(StartAnswer(state))

    threading.Thread(target=hear, daemon=True).start()
    try:
        await supervisor.run(ready)
    except OctopisError as failure:
        if started:
            log = Path(started[0].folder) / LOG_FILE
            log.write_text(f"{failure}\n", encoding="utf-8")
        else:
            _say(StartAnswer(error=str(failure), status=failure.exit_status))
        sys.exit(failure.exit_status)


def _say(answer: StartAnswer) -> None:
    with contextlib.suppress(OSError):  # the starter is gone; then there is no "stay" either
        os.write(sys.stdout.fileno(), msgspec.json.encode(answer) + b"\n")


if __name__ == "__main__":
    main()
