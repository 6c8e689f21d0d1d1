"""Lines of a file, a pipe or a terminal, as they come, without keeping the event loop waiting."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

from octopis.errors import InvalidConfiguration

_READ_BYTES = 2**16
LINE_MAX = 2**24


async def line_batches(path: Path) -> AsyncIterator[list[bytes]]:
    """Yield the lines that have come since the last time; `-` is standard input.

    A thread reads ahead by one piece. It is no part of asyncio's own pool, which at the end would
    wait for somebody to type something. Raises InvalidConfiguration where the file cannot be read.
    """
    try:
        descriptor = sys.stdin.fileno() if str(path) == "-" else os.open(path, os.O_RDONLY)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure
    pieces: asyncio.Queue[bytes | OSError] = asyncio.Queue(1)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(descriptor, pieces, loop), daemon=True).start()
    rest = b""
    while piece := await pieces.get():
        if isinstance(piece, OSError):
            raise InvalidConfiguration(f"cannot read {path}: {piece.strerror}") from piece
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LINE_MAX:
            raise InvalidConfiguration(f"{path} has a line of more than {LINE_MAX:,} bytes")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _read(
    descriptor: int, pieces: "asyncio.Queue[bytes | OSError]", loop: asyncio.AbstractEventLoop
) -> None:
    piece: bytes | OSError = b"-"
    while piece and not isinstance(piece, OSError):
        try:
            piece = os.read(descriptor, _READ_BYTES)
        except OSError as failure:
            piece = failure
        try:
            asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()
        except (RuntimeError, asyncio.CancelledError):  # nobody reads any more
            return
