"""The overlay on two machines of examples/, with two addresses of this one in their place."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from octopis import connect_sync
from support.overlay_command import Shell, wait_until
from support.processes import free_ports

EXAMPLE = Path(__file__).parents[2] / "examples" / "two-machines.toml"
MACHINES = {"192.0.2.1": "127.0.0.1", "192.0.2.2": "127.0.0.2"}
BROKERS = ("a,0", "b,0", "c,0", "a,1", "b,1", "c,1")


@pytest.fixture
def shell(tmp_path: Path):
    made = Shell(tmp_path)
    yield made
    made.end()


def placed(text: str) -> str:
    """Return the example with addresses that this machine has, and ports that are free."""
    for documented, here in MACHINES.items():
        text = text.replace(documented, here)
    ports = iter(free_ports(len(BROKERS)))
    return re.sub(r"port = \d+", lambda _: f"port = {next(ports)}", text)


def started(shell: Shell, config: str) -> list["subprocess.Popen[str]"]:
    """Start every broker, and wait until all take requests."""
    brokers = [shell.start("broker", "run", "--config", config, "--broker", b) for b in BROKERS]
    for broker in brokers:
        assert broker.stderr is not None
        while "takes requests at octopis://" not in (line := broker.stderr.readline()):
            assert line, "the broker has ended"
    return brokers


def test_notification_goes_from_one_machine_to_the_other(shell: Shell):
    text = placed(EXAMPLE.read_text(encoding="utf-8"))
    config = shell.config(text)
    brokers = started(shell, config)
    try:
        status = shell.run("overlay", "status", "--config", config)
        assert "6, 6 of them ready" in status.stdout
        places = dict(re.findall(r'brokers\."([abc],[01])"\]\nhost = "(.*)"', text))
        assert {places["a,0"], places["c,0"]} == {"127.0.0.1"}
        assert {places["a,1"], places["c,1"]} == {"127.0.0.2"}
        here, there = (address(text, broker) for broker in ("a,0", "c,1"))
        reader = shell.start("sub", there, "price > 50", "--count", "1")
        assert reader.stderr is not None
        assert reader.stderr.readline()  # it says when it has begun
        with connect_sync(here) as client:
            wait_until(lambda: client.status()["subscriptions"] == 1)
        assert shell.run("pub", here, "symbol=IBM", "price=84.5").returncode == 0
        assert reader.stdout is not None
        assert json.loads(reader.stdout.readline())["attributes"] == {
            "symbol": "IBM",
            "price": 84.5,
        }
        assert reader.wait(timeout=30) == 0
    finally:
        for broker in brokers:
            broker.send_signal(signal.SIGTERM)
        for broker in brokers:
            broker.communicate(timeout=30)


def address(text: str, broker: str) -> str:
    """Return where a broker of a configuration listens."""
    found = re.search(rf'brokers\."{broker}"\]\nhost = "(.*)"\nport = (\d+)', text)
    assert found is not None
    return f"octopis://{found[1]}:{found[2]}"
