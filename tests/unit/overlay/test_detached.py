import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.overlay.detached import start_detached
from octopis.overlay.registry import is_running, overlays
from support.overlay_command import wait_until
from support.supervised import small_order


def test_overlay_goes_on_without_its_starter_until_it_is_told_to_stop(tmp_path: Path):
    state = start_detached(small_order(tmp_path))
    try:
        assert is_running(state)
        assert overlays(tmp_path)[0] == [state]
        socket.create_connection(("127.0.0.1", int(state.url.rsplit(":", 1)[1]))).close()
    finally:
        os.kill(state.pid, signal.SIGTERM)
        wait_until(lambda: not is_running(state))
    assert overlays(tmp_path) == ([], [])


def test_failure_to_start_arrives_as_it_was(tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="did you mean 'routing'"):
        start_detached(small_order(tmp_path, configuration="[rooting]\n"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OperationFailed, match="cannot listen"):
            start_detached(small_order(tmp_path, first_port=port))


def test_overlay_whose_starter_is_gone_before_it_is_ready_stops(tmp_path: Path):
    command = [sys.executable, "-P", "-m", "octopis.overlay.detached"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(small_order(tmp_path)) + b"\n")
        process.stdin.close()
        began = time.monotonic()
        process.wait(timeout=30)
        assert time.monotonic() - began < 30
    assert overlays(tmp_path) == ([], [])
