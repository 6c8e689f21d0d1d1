"""A connection that is aborted behind its owner's back: what is on the wire is lost."""

import socket
from pathlib import Path

import pytest

from octopis.benchmarks.kills.sockets import abort_connection

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="only Linux says which sockets a process has"
)


def test_only_the_connections_to_a_port_are_aborted_with_what_they_carry():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", 0)) as other_server,
        socket.create_connection(server.getsockname()) as dialled,
        socket.create_connection(other_server.getsockname()) as other,
        server.accept()[0] as accepted,
        other_server.accept()[0] as other_accepted,
    ):
        accepted.sendall(b"on the wire")
        abort_connection(server.getsockname()[1])
        with pytest.raises(ConnectionResetError):
            accepted.recv(1)
        with pytest.raises(OSError, match=r"not connected|reset"):
            dialled.recv(1)
        other.sendall(b"still here")
        assert other_accepted.recv(10) == b"still here"
