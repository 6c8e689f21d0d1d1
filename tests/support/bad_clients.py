"""Gateways with limits that are quick to reach, and clients that reach them."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.gateway import Gateway, gateway_run, post
from support.overlay_command import Shell, Up

QUICK = {
    "head_s": "0.5",
    "body_s": "0.5",
    "idle_s": "0.5",
    "body_bytes": "10000",
    "line_bytes": "5000",
    "head_bytes": "20000",
    "streams": "3",
    "connections": "30",
    "patience_s": "0.3",
    "answer_s": "2",
}
"""Limits that tests reach in a moment."""


@contextmanager
def limited(overlay: tuple[Shell, Up], **changes: str) -> Iterator[Gateway]:
    """Run a gateway with limits that are quick to reach."""
    shell, up = overlay
    words = [f"--limit={name}={value}" for name, value in {**QUICK, **changes}.items()]
    with gateway_run(shell, up, *words) as gateway:
        yield gateway


def is_well(gateway: Gateway) -> bool:
    return post(f"{gateway.url}/notifications", {"a": 1}).status == 202


def talk(gateway: Gateway, text: bytes, limit_s: float = 5.0) -> bytes:
    """Send bytes, and return all that comes until the connection ends."""
    host, port = gateway.address.split(":")
    with socket.create_connection((host, int(port)), timeout=limit_s) as connection:
        connection.sendall(text)
        found = b""
        while piece := connection.recv(65_536):
            found += piece
        return found


def drip(gateway: Gateway, head: bytes, drop: bytes, limit_s: float = 10.0) -> bytes:
    """Send a drop now and then, and return what comes until the connection ends."""
    host, port = gateway.address.split(":")
    found = b""
    with socket.create_connection((host, int(port)), timeout=0.1) as connection:
        connection.sendall(head)
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            try:
                piece = connection.recv(65_536)
            except TimeoutError:
                try:
                    connection.sendall(drop)
                except OSError:
                    return found
                continue
            except ConnectionResetError:
                return found
            if not piece:
                return found
            found += piece
    pytest.fail("the connection was not ended")
