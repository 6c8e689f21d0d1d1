"""The gateway beside an overlay's brokers: a process of its own, started, watched and stopped.

This room knows only how to start it: `octopis.gateway` uses overlays, not the other way round.

Its socket stays open here while a gateway that has died is replaced, so that whoever connects
meanwhile waits instead of being refused.
"""

import asyncio
import contextlib
import logging
import socket
import sys
import time
from pathlib import Path

import msgspec

from octopis.errors import OperationFailed
from octopis.overlay.deaths import Deaths

DEFAULT_PORT = 7480
START_S = 30.0
_BACKLOG = 512
_MODULE = "octopis.gateway.process"
_log = logging.getLogger(__name__)


class GatewayOrder(msgspec.Struct, frozen=True):
    """What a gateway's process is to do."""

    name: str
    configuration: str
    """The path of the overlay's document."""

    listener: int
    """The descriptor of the socket at which it listens."""

    credentials: str = ""
    """Under security, the file of those with which it looks how brokers are; empty: it does not."""


def gateway_socket(port: int) -> socket.socket:
    """Return a socket at which a gateway can listen, or raise OperationFailed."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
    except OSError as failure:
        raise OperationFailed(
            f"the gateway cannot listen at 127.0.0.1:{port}: {failure.strerror}; nothing "
            "was started. Choose another port with --gateway-port"
        ) from failure


def gateway_url(listener: socket.socket) -> str:
    """Return where people find a gateway that listens there."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


class GatewayProcess:
    """The gateway of one overlay. `open` it, `start` it, then `end` it whatever happens.

    It listens at a port, or at a socket that its owner keeps for the gateways of several overlays,
    one after the other.
    """

    def __init__(self, place: int | socket.socket) -> None:
        self._place = place
        self._listener: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._deaths = Deaths()

    @property
    def url(self) -> str:
        """Where people find it."""
        assert self._listener is not None, "it is opened first"
        return gateway_url(self._listener)

    def open(self) -> None:
        """Take the port, or raise OperationFailed."""
        if isinstance(self._place, int):
            self._listener = gateway_socket(self._place)
        else:  # ours to close, and the owner's stays open
            self._listener = self._place.dup()

    async def start(self, name: str, document: Path, credentials: str) -> None:
        """Start it, and return when it serves. Raises OperationFailed where it does not."""
        assert self._listener is not None, "it is opened first"
        log = document.with_name("gateway.log")
        order = GatewayOrder(name, str(document), self._listener.fileno(), credentials)
        try:
            async with asyncio.timeout(START_S):
                is_ready = await self._start(order, log)
        except TimeoutError:
            is_ready = False
        if not is_ready:
            tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
            raise OperationFailed(f"the gateway did not start; {log} ends: {' / '.join(tail)}")
        self._keeper = asyncio.create_task(self._keep(order, log))

    async def end(self, limit_s: float) -> None:
        """Stop it; kill it where it has not ended in time."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        process = self._process
        if process is not None and process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                async with asyncio.timeout(limit_s):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._listener is not None:
            self._listener.close()

    async def _start(self, order: GatewayOrder, log: Path) -> bool:
        """Start a process, and tell whether it serves."""
        with log.open("ab") as out:
            self._process = process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                _MODULE,
                msgspec.json.encode(order).decode(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=out,
                pass_fds=[order.listener],
                start_new_session=True,
            )
        assert process.stdout is not None
        return await process.stdout.readline() == b"ready\n"

    async def _keep(self, order: GatewayOrder, log: Path) -> None:
        """Start it anew as often as it ends by itself, unless that goes on and on."""
        while True:
            assert self._process is not None
            status = await self._process.wait()
            delay_s = self._deaths.next_start_s(time.monotonic())
            if delay_s is None:
                _log.error("the gateway has ended again and again: it is not started any more")
                return
            _log.warning("the gateway ended with status %d; it starts anew", status)
            await asyncio.sleep(delay_s)
            with contextlib.suppress(OSError):  # no process can be made now: its turn comes again
                await self._start(order, log)
