"""`octopis overlay up`: real processes start together, end together, and leave nothing behind."""

import contextlib
import os
import signal
import socket
import time

from support.overlay_command import SMALL, Shell, Up, wait_until


def is_free(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_server((host, int(port))):
            return True
    except OSError:
        return False


def test_20_starts_and_stops_leave_no_process_and_no_port(shell: Shell):
    config = shell.config()
    for number in range(20):
        with shell.up("--config", config, "--processes", "2") as up:
            assert len(shell.workers()) == 2
            stop = signal.SIGTERM if number % 2 else signal.SIGINT
            assert up.stop(stop) == (0, "")
        assert shell.is_empty()
        assert all(map(is_free, up.addresses.values()))
        assert not list(shell.state.iterdir())


def test_killed_parent_takes_its_processes_along(shell: Shell):
    with shell.up("--config", shell.config(), "--processes", "2") as up:
        assert len(shell.workers()) == 2
        up.process.kill()
        wait_until(shell.is_empty)
        assert all(map(is_free, up.addresses.values()))
    found = shell.run("overlay", "status")
    assert found.returncode == 1
    assert "has ended without an orderly stop: its logs are in" in found.stderr
    with shell.up("--config", "overlay.toml") as again:
        assert again.stop()[0] == 0


def is_whole(up: Up) -> bool:
    """Tell whether every broker is ready and every link up."""
    found = up.statuses().values()
    return all(
        "error" not in each and each["ready"] and all(link["up"] for link in each["links"].values())
        for each in found
    )


def test_killed_child_is_started_anew_and_its_brokers_join_again(shell: Shell):
    with shell.up("--config", shell.config(), "--processes", "2") as up:
        before = shell.workers()
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(shell.workers()) == 2 and shell.workers() != before)
        wait_until(lambda: is_whole(up))
        printed = shell.run("pub", up.url("a,0"), "x=1")
        assert printed.returncode == 0, printed.stderr
        status, said = up.stop()
        assert status == 0
        assert "ended by signal 9 (SIGKILL); it starts anew in 0.2 s" in said
    assert shell.is_empty()


def test_child_that_dies_again_and_again_ends_the_others_and_it_is_said_which_and_why(shell: Shell):
    with shell.up("--config", shell.config(), "--processes", "2") as up:
        (kept, *_), killed = shell.workers(), set()
        while up.process.poll() is None and len(killed) < 20:
            for worker in set(shell.workers()) - {kept} - killed:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                killed.add(worker)
            time.sleep(0.05)
        _, said = up.process.communicate(timeout=30)
        assert up.process.returncode == 1
        assert "ended by signal 9 (SIGKILL), so the whole overlay was stopped; its log" in said
        assert "with the brokers a,0" in said or "with the brokers a,1" in said
        wait_until(shell.is_empty)


def test_second_overlay_at_the_same_ports_says_so_before_anything_starts(shell: Shell):
    with shell.up("--config", shell.config()) as up:
        port = up.state["name"].rsplit("-", 1)[1]
        before = set(shell.processes())
        second = shell.run("overlay", "up", "--config", "overlay.toml", "--port", port)
        assert second.returncode == 1
        assert f"B(a, 0) cannot listen at 127.0.0.1:{port}" in second.stderr
        assert "nothing was started" in second.stderr
        assert set(shell.processes()) == before
        assert up.process.poll() is None
        assert up.stop()[0] == 0


def test_interrupted_start_leaves_nothing(shell: Shell):
    shell.config()
    for started in (shell.state.exists, shell.workers):
        process = shell.start("overlay", "up", "--config", "overlay.toml", "--port", "0")
        wait_until(started)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0, said
        assert shell.is_empty()


def test_detached_overlay_is_found_asked_and_stopped(shell: Shell):
    started = shell.run("overlay", "up", "--config", shell.config(), "--port", "0", "--detach")
    assert started.returncode == 0, started.stderr
    assert "small-" in started.stdout
    assert "4 brokers in" in started.stdout
    try:
        status = shell.run("overlay", "status")
        assert "4, 4 of them ready" in status.stdout
        assert "8 of 8 directions up" in status.stdout
        twice = shell.run("overlay", "status", "nothing")
        assert (twice.returncode, "no overlay 'nothing' runs" in twice.stderr) == (2, True)
    finally:
        stopped = shell.run("overlay", "down")
    assert "has stopped." in stopped.stdout
    assert shell.is_empty()
    again = shell.run("overlay", "down")
    assert (again.returncode, "no overlay runs" in again.stderr) == (1, True)


def test_detached_overlay_that_cannot_start_says_why(shell: Shell):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        config = shell.config()
        found = shell.run("overlay", "up", "--config", config, "--port", port, "--detach")
    assert found.returncode == 1
    assert "cannot listen" in found.stderr
    assert shell.is_empty()


def test_what_is_published_before_a_stop_is_delivered_on_the_way_out(shell: Shell):
    slow = """
[[links.shape]]
source = "a,0"
target = "b,0"
bandwidth_bytes_per_s = 20_000
"""
    with shell.up("--config", shell.config(SMALL + slow), "--algorithm", "snr") as up:
        reader = shell.start("sub", up.url("b,0"), "x >= 0")
        assert reader.stderr is not None
        assert "subscribed" in reader.stderr.readline()
        wait_until(lambda: up.statuses()["a,0"]["subscriptions"] == 1)
        lines = "".join(f'{{"x": {number}}}\n' for number in range(300))
        writer = shell.start("pub", up.url("a,0"), "--file", "-")
        assert "accepted: 300 notifications" in writer.communicate(lines, timeout=30)[0]
        assert up.stop()[0] == 0
        reader.send_signal(signal.SIGINT)
        printed, _ = reader.communicate(timeout=30)
        assert len(printed.splitlines()) == 300
