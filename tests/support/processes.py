"""Brokers as processes of their own, for tests that kill them."""

import json
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress


def free_ports(count: int) -> list[int]:
    """Return ports in a row that nobody listens at, and that no connection is given by the system.

    Those that it gives to connections begin at 32768: one of them may be gone a moment later.
    """
    while True:
        first = secrets.choice(range(15_000, 32_000 - count))
        ports = list(range(first, first + count))
        with suppress(OSError), ExitStack() as stack:
            for port in ports:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return ports


class BrokerProcess:
    """One broker of `line-N`, in a process of its own."""

    def __init__(self, ports: list[int], number: int, algorithm: str = "snr") -> None:
        options = {
            "overlay": f"line-{len(ports)}",
            "algorithm": algorithm,
            "ports": ports,
            "brokers": [number],
        }
        self.address = f"octopis://127.0.0.1:{ports[number]}"
        self._command = [sys.executable, "-m", "octopis.benchmarks.live.roles", "brokers"]
        self._command.append(json.dumps(options))
        self.popen = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait_until_ready(self) -> None:
        """Wait until the broker takes requests."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert line, f"the broker ended: {self.popen.communicate()[1]}"

    def kill(self) -> None:
        """End the process at once, as a power cut would."""
        self.popen.send_signal(signal.SIGKILL)
        self._finish()

    def stop(self) -> int:
        """Ask the process to end, and return its exit status."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        return self._finish()

    def restart(self) -> None:
        """Start the broker again at the same place."""
        self.popen = self._start()

    def _finish(self) -> int:
        self.popen.communicate(timeout=15)
        return self.popen.returncode


@contextmanager
def broker_line(count: int, algorithm: str = "snr") -> Iterator[list[BrokerProcess]]:
    """Run brokers in a row, each in a process, and end all of them whatever happens."""
    ports = free_ports(count)
    brokers = [BrokerProcess(ports, number, algorithm) for number in range(count)]
    try:
        for broker in brokers:
            broker.wait_until_ready()
        yield brokers
    finally:
        for broker in brokers:
            if broker.popen.poll() is None:
                broker.kill()
