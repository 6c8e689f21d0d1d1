"""`octopis bench gateway`: a broker, a gateway and a load over loopback, each a process of its own.

The machine may have other work: so beside rates stands the CPU time that each process took for one
notification, which says what the rate would be with nothing else there.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from octopis.benchmarks.processes import free_ports, started_role
from octopis.errors import OperationFailed

_MODULE = "octopis.benchmarks.gateway.roles"
_TICKS_S = os.sysconf("SC_CLK_TCK")


class Setting(NamedTuple):
    """What is measured, and what we set out to reach on a 2-core machine."""

    what: str
    role: str
    options: dict[str, Any]
    target: int | None


SETTINGS = (
    Setting("single JSON POSTs, 32 connections", "poster", {"connections": 32}, 5_000),
    Setting("NDJSON stream, 1 connection", "streamer", {}, 60_000),
    Setting(
        "CloudEvents (binary), 32 connections", "poster", {"connections": 32, "events": True}, None
    ),
    Setting("SSE, 10 readers of one filter", "reader", {"readers": 10, "filters": 1}, 50_000),
    Setting("SSE, 10 readers of 10 filters", "reader", {"readers": 10, "filters": 10}, 50_000),
    Setting("SSE, 100 readers of one filter", "reader", {"readers": 100, "filters": 1}, 50_000),
    Setting("WebSocket, 10 readers of one filter", "socket", {"readers": 10}, None),
)


@dataclass(frozen=True, slots=True)
class GatewayFigure:
    """One measured figure: items in a second, and the CPU time of an item in microseconds."""

    what: str
    per_s: float
    gateway_us: float
    broker_us: float
    load_us: float
    target: int | None


def run(seconds: float) -> Iterator[GatewayFigure]:
    """Yield the figures, each of a run that takes so long."""
    for setting in SETTINGS:
        with ExitStack() as stack:
            broker, broker_pid = stack.enter_context(_broker())
            url, gateway_pid = stack.enter_context(_gateway(broker))
            options = {**setting.options, "seconds": seconds, "gateway": url, "broker": broker}
            load = stack.enter_context(started_role(setting.role, options, _MODULE))
            load.hear()
            pids = gateway_pid, broker_pid, load.pid
            before = list(map(_cpu_s, pids))
            load.go()
            found = load.hear()
            spent = [now - then for now, then in zip(map(_cpu_s, pids), before, strict=True)]
        if found["lost"]:
            raise OperationFailed(f"{setting.what}: {found['lost']:,} were lost")
        gateway_us, broker_us, load_us = (1e6 * cpu_s / found["items"] for cpu_s in spent)
        per_s = found["items"] / found["seconds"]
        yield GatewayFigure(setting.what, per_s, gateway_us, broker_us, load_us, setting.target)


@contextmanager
def _broker() -> Iterator[tuple[str, int]]:
    (port,) = free_ports(1)
    options = {"overlay": "line-1", "algorithm": "tnr", "ports": [port], "brokers": [0]}
    with started_role("brokers", options) as process:
        process.hear()
        yield f"octopis://127.0.0.1:{port}", process.pid


@contextmanager
def _gateway(broker: str) -> Iterator[tuple[str, int]]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "octopis", "gateway", "run", broker, "--port", str(port)]
    command += ["--limit", "rate_per_s=1000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise OperationFailed("the gateway of the benchmark did not start")
        yield f"127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.communicate()


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S
