"""`octopis bench security`: what encryption, roles and logins cost, on one machine in one run.

One broker, a publisher and a subscriber, each in a process of its own: in the open, behind TLS, and
behind TLS with a role whose filters have three terms for what may be published and three for what
may be seen. The three take turns, so that whatever else runs here falls on all of them. Rates are
end to end; the CPU time of the broker tells what it costs where clients or others take the machine.

Logins are whole: TCP, TLS, hello, login and welcome, many at a time, by a process that does nothing
else.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec
import uvloop

from octopis.benchmarks.live.roles import overlay_named
from octopis.benchmarks.processes import RoleProcess, free_ports, started_role
from octopis.client.address import parse_addresses
from octopis.client.connection import ClientConnection, Receiver, dial
from octopis.client.credentials import Credentials
from octopis.core.wire.greeting import ClientHello

OPEN, TLS, ROLE = "in the open", "TLS", "TLS and a role's filters"
VARIANTS = (OPEN, TLS, ROLE)
SUBSCRIPTIONS = (50, 1_000)
ITERATIONS = (4_096, 50_000)
AT_ONCE = 16
TARGETS = {TLS: "at most 30%", ROLE: "at most 10%", "token": "at least 500"}

_PUBLISH = "close > 0 AND volume >= 0 AND symbol IS NOT NULL"
_SUBSCRIBE = "high > 0 AND low > 0 AND open < 1000000000"
_ACCESS = """
[roles.everything]
publish = "TRUE"
subscribe = "TRUE"
[roles.some]
publish = "{publish}"
subscribe = "{subscribe}"
[users.everybody]
roles = ["everything"]
[users.somebody]
roles = ["some"]
[users.slow]
roles = ["some"]
password = "{slow}"
[users.quick]
roles = ["some"]
password = "{quick}"
"""
_WORD = "a password for measuring"
_USERS = {OPEN: None, TLS: "everybody", ROLE: "somebody"}


@dataclass(frozen=True, slots=True)
class SecurityFigure:
    """One figure; `target` is what we set out to reach, where there is such a figure."""

    setting: str
    variant: str
    value: float
    unit: str
    target: str = ""


def run(notifications: int, rounds: int, seconds: float, seed: int) -> Iterator[SecurityFigure]:
    """Yield the figures of notifications, then those of logins; files are made and removed."""
    with TemporaryDirectory() as parent:
        folder = _folder(Path(parent) / "secure")
        for subscriptions in SUBSCRIPTIONS:
            plan = {"seed": seed, "subscriptions": subscriptions, "notifications": notifications}
            yield from _throughput(folder, plan, rounds)
        yield from _logins(folder, seconds)


def _throughput(folder: Path, plan: dict[str, Any], rounds: int) -> Iterator[SecurityFigure]:
    setting = f"1 broker, {plan['subscriptions']:,} subscriptions"
    rates: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    costs: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for _ in range(rounds):
        for variant in VARIANTS:
            rate, cost_us = _once(folder, variant, plan)
            rates[variant].append(rate)
            costs[variant].append(cost_us)
    for found, unit in ((rates, "notifications/s"), (costs, "us of the broker's CPU for each")):
        for variant in VARIANTS:
            yield SecurityFigure(setting, variant, median(found[variant]), unit)
    for variant, before in ((TLS, OPEN), (ROLE, TLS)):
        slower = [1 - now / was for now, was in zip(rates[variant], rates[before], strict=True)]
        dearer = [now / was - 1 for now, was in zip(costs[variant], costs[before], strict=True)]
        target = TARGETS[variant]
        lost = 100 * (1 - median(rates[variant]) / median(rates[before]))
        more = 100 * (median(costs[variant]) / median(costs[before]) - 1)
        yield SecurityFigure(setting, variant, lost, f"% of the rate {_spread(slower)}", target)
        yield SecurityFigure(setting, variant, more, f"% more of its CPU {_spread(dearer)}")


def _spread(shares: list[float]) -> str:
    return f"({100 * min(shares):.0f} to {100 * max(shares):.0f})"


def _once(folder: Path, variant: str, plan: dict[str, Any]) -> tuple[float, float]:
    """Return the rate of one run, and what the broker's CPU did for each notification."""
    user = _USERS[variant]
    with ExitStack() as stack:
        broker, address = _broker(stack, folder if user else None)
        who = {"address": address}
        if user is not None:
            who["credentials"] = str(folder / "clients" / f"{user}.toml")
        reader = _ready(stack, "subscriber", plan | who)
        writer = _ready(stack, "publisher", plan | who)
        before_s = cpu_s(broker.pid)
        writer.go()
        written, read = writer.hear(), reader.hear()
        used_s = cpu_s(broker.pid) - before_s
    published = plan["notifications"] + 1
    return published / (read["finished"] - written["started"]), 1e6 * used_s / published


def _broker(stack: ExitStack, folder: Path | None) -> tuple[RoleProcess, str]:
    """Start one broker, and return its process and where to connect."""
    (port,) = free_ports(1)
    options = {
        "overlay": "line-1",
        "algorithm": "tnr",
        "level": "memory",
        "ports": [port],
        "brokers": [0],
        "security": "" if folder is None else str(folder),
    }
    broker = stack.enter_context(started_role("brokers", options))
    broker.hear()
    return broker, f"octopis://localhost:{port}"


def _ready(stack: ExitStack, role: str, options: dict[str, Any]) -> RoleProcess:
    process = stack.enter_context(started_role(role, options))
    process.hear()
    return process


def cpu_s(pid: int) -> float:
    """Return how much CPU time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Logins


def _logins(folder: Path, seconds: float) -> Iterator[SecurityFigure]:
    for way, credentials in _ways(folder).items():
        with ExitStack() as stack:
            broker, address = _broker(stack, folder)
            options = {"address": address, "seconds": seconds, "credentials": credentials}
            client = stack.enter_context(started_role("logins", options, __name__))
            client.hear()
            before_s = cpu_s(broker.pid)
            client.go()
            told = client.hear()
            used_s = cpu_s(broker.pid) - before_s
        target = TARGETS.get(way, "")
        done, client_s = told["logins"], told["cpu_s"]
        yield SecurityFigure("logins", way, done / told["seconds"], "logins/s", target)
        yield SecurityFigure("logins", way, 1e3 * used_s / done, "ms of the broker's CPU for each")
        yield SecurityFigure("logins", way, 1e3 * client_s / done, "ms of the client's CPU")


def _ways(folder: Path) -> dict[str, dict[str, str]]:
    """Return credentials for each way to log in; secrets are in files."""
    ca, certificate = str(folder / "ca.pem"), folder / "clients" / "somebody.pem"
    found = {
        "token": {"ca": ca, "token_file": str(folder / "a.token")},
        "certificate": {
            "ca": ca,
            "certificate": str(certificate),
            "key": str(certificate.with_suffix(".key")),
        },
    }
    for user, iterations in zip(("quick", "slow"), ITERATIONS, strict=True):
        password = {"ca": ca, "user": user, "password_file": str(folder / "a.password")}
        found[f"password, {iterations:,} iterations"] = password
    return found


async def _log_in(options: dict[str, Any]) -> None:
    """Log in as often as can be, many at a time, when told to go."""
    (address,) = parse_addresses(options["address"])
    credentials = Credentials(**options["credentials"])
    context = credentials.context()
    numbers = count()

    def make() -> ClientConnection:
        login = credentials.login()
        hello = ClientHello(f"client-{next(numbers)}", 100, login=login.said)
        return ClientConnection(hello, cast("Receiver", _Nothing()), count(1), login)

    async def again(until: float) -> int:
        done = 0
        while time.monotonic() < until:
            connection = await dial(address, 10.0, make, context)
            connection.close("logged in")
            await connection.lost
            done += 1
        return done

    await again(time.monotonic() + 0.2)  # all is loaded
    _say({"ready": True})
    await asyncio.to_thread(sys.stdin.readline)
    started, before_s = time.monotonic(), time.process_time()
    until = started + options["seconds"]
    done = sum(await asyncio.gather(*(again(until) for _ in range(AT_ONCE))))
    took_s, used_s = time.monotonic() - started, time.process_time() - before_s
    _say({"logins": done, "seconds": took_s, "cpu_s": used_s})


class _Nothing:
    """A client that is only let in."""

    def welcomed(self, _: object) -> None:
        """That is all it wanted."""


def _say(facts: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(facts).decode() + "\n")
    sys.stdout.flush()


# The folder


def _folder(path: Path) -> Path:
    """Make a security folder, with users for each way to log in."""
    from octopis.security import certificates, making, passwords, tokens  # noqa: PLC0415 - an extra

    now = datetime.now(UTC)
    (broker,) = overlay_named("line-1").brokers
    made = making.make_folder(path, "bench", {broker: []}, days=60, now=now)
    authority = certificates.read_authority(made.ca, made.ca_key)
    for user in ("everybody", "somebody"):
        making.add_client(made, authority, user, 2, now)
    quick, slow = (passwords.make_password(_WORD, each) for each in ITERATIONS)
    access = _ACCESS.format(publish=_PUBLISH, subscribe=_SUBSCRIBE, quick=quick, slow=slow)
    made.access.write_text(access, encoding="utf-8")
    key = tokens.read_private_key(made.token_key)
    token = tokens.issue_token(
        key, "somebody", audience="octopis", lifetime_s=86_400.0, now=time.time()
    )
    (path / "a.token").write_text(token, encoding="utf-8")
    (path / "a.password").write_text(_WORD, encoding="utf-8")
    for name in ("a.token", "a.password"):
        (path / name).chmod(0o600)
    return path


if __name__ == "__main__":
    uvloop.run(_log_in(msgspec.json.decode(sys.argv[2])))
