"""Breaks a TCP connection of this process behind its owner's back, as a pulled cable would."""

import ctypes
import socket
from contextlib import suppress
from pathlib import Path

_UNSPECIFIED = bytes(16)
"""An address of no family: to connect to it is to abort the connection (Linux: tcp_disconnect)."""


def abort_connection(port: int) -> None:
    """Abort all connections that were dialled to a port; what is in their buffers is lost."""
    library = ctypes.CDLL(None, use_errno=True)
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile, or no socket
            found = socket.socket(fileno=int(path.name))
            try:
                if found.type == socket.SOCK_STREAM and found.getpeername()[1:2] == (port,):
                    library.connect(found.fileno(), _UNSPECIFIED, len(_UNSPECIFIED))
            finally:
                found.detach()
