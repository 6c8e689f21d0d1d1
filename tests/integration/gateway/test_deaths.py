"""A gateway that dies, an overlay that is away, and options that are wrong."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octopis import connect_sync
from support.bad_clients import is_well
from support.gateway import Gateway, curl, events, gateway_run, post
from support.overlay_command import SMALL, Shell, wait_until


def gateways(shell: Shell) -> list[int]:
    """Return the processes of gateways beside brokers."""
    found = []
    for pid in shell.processes():
        try:
            text = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"octopis.gateway.process" in text:
            found.append(pid)
    return found


def test_durable_stream_goes_on_without_loss_when_the_gateway_is_killed(shell: Shell):
    words = ("--config", shell.config(SMALL), "--durable", "kept", "--gateway-port", "0")
    with shell.up(*words) as up:
        gateway = Gateway(up.state["gateway"], up)
        address = f"{gateway.url}/notifications"
        with events(address, durable="through", filter="n >= 0") as stream:
            gateway.settled()
            gateway.publish(*({"n": n} for n in range(20)))
            got = stream.take(10)
            (before,) = gateways(shell)
            os.kill(before, signal.SIGKILL)
            with connect_sync(up.url("b,1")) as client:
                client.publish_many([{"n": n} for n in range(20, 40)])
            wait_until(lambda: gateways(shell) not in ([], [before]))
        last = ("-H", f"Last-Event-ID: {got[-1].id}")
        with events(address, *last, durable="through") as stream:
            got += stream.take(30)
        numbers = [each.data["attributes"]["n"] for each in got]
        assert sorted(numbers) == list(range(40)), "each once"
        assert [n for n in numbers if n < 20] == list(range(20)), "in the publisher's order"
        status, said = up.stop()
        assert (status, "the gateway ended with status -9; it starts anew" in said) == (0, True)
    assert shell.is_empty()


def test_overlay_that_is_away_is_said_and_comes_back(shell: Shell):
    config = shell.config(SMALL)
    with shell.up("--config", config) as up:
        text = (shell.state / up.state["name"] / "overlay.toml").read_text(encoding="utf-8")
        (shell.folder / "placed.toml").write_text(text, encoding="utf-8")
        words = ("--config", "placed.toml", "--limit", "patience_s=0.2")
        with gateway_run(shell, up, *words) as gateway:
            assert is_well(gateway)
            with events(f"{gateway.url}/overlay/live") as live:
                live.next()
                assert up.stop()[0] == 0
                kinds = set()
                while "broker_down" not in kinds:
                    pulse = live.next().data
                    kinds |= {each["kind"] for each in pulse["events"]}
                assert not pulse["brokers"]["a,0"]["up"]
            found = post(f"{gateway.url}/notifications", {"a": 1})
            assert (found.status, found.headers["retry-after"]) == (503, "1")
            assert "the overlay is away" in found.json["detail"]
            assert curl(f"{gateway.url}/notifications?filter=a%3D1").status == 503
            assert curl(f"{gateway.url}/overlay/brokers/a,0").status == 503
            assert curl(f"{gateway.url}/metrics").status == 200
            with again(shell):
                wait_until(lambda: is_well(gateway))


@pytest.mark.parametrize("path", ["notifications?filter=a%3D1", "durable/still?max=1"])
def test_broker_that_does_not_answer_keeps_nobody_waiting(shell: Shell, path: str):
    with shell.up("--config", shell.config(SMALL), "--durable", "kept") as up:
        with gateway_run(shell, up, "--limit", "answer_s=1") as gateway:
            with events(f"{gateway.url}/notifications", durable="still", filter="a = 1"):
                pass  # it is made, and its broker is known
            workers = shell.workers()
            for each in workers:
                os.kill(each, signal.SIGSTOP)
            try:
                found = curl(f"{gateway.url}/{path}", limit_s=15)
            finally:
                for each in workers:
                    os.kill(each, signal.SIGCONT)
            assert (found.status, found.headers["retry-after"]) == (503, "1")


@contextmanager
def again(shell: Shell) -> Iterator[None]:
    """Run the overlay where it was before."""
    process = shell.start("overlay", "up", "--config", "placed.toml", "--json")
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_gateway_says_at_once_what_is_wrong_with_its_options(shell: Shell):
    for words, said in (
        (("--overlay", "nobody"), "no overlay"),
        (("octopis://127.0.0.1:1", "--overlay", "x"), "not several"),
        (("octopis://127.0.0.1:1", "--host", "0.0.0.0"), "other machines can reach it"),  # noqa: S104
        (("octopis://127.0.0.1:1", "--limit", "body=1"), "did you mean"),
        (("octopis://127.0.0.1:1", "--limit", "body_bytes=0"), ">= 1"),
    ):
        found = shell.run("gateway", "run", *words)
        assert found.returncode in {1, 2}
        assert said in found.stderr, words
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        found = shell.run("overlay", "up", "--config", shell.config(), "--gateway-port", port)
        assert found.returncode == 1
        assert f"the gateway cannot listen at 127.0.0.1:{port}" in found.stderr
    assert shell.is_empty()
