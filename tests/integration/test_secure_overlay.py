"""`octopis overlay up --secure` as processes, and the commands that use it."""

import json
import os
import signal
from pathlib import Path

import pytest

from support.overlay_command import SMALL, Shell, wait_until


@pytest.fixture
def shell(tmp_path: Path):
    made = Shell(tmp_path)
    yield made
    made.end()


def test_one_command_makes_a_folder_and_an_overlay_that_its_commands_can_use(shell: Shell):
    with shell.up("--config", shell.config(SMALL), "--secure", "sec", "--processes", "2") as up:
        credentials = Path(up.state["credentials"])
        assert credentials == shell.folder / "sec" / "clients" / "operator.toml"
        assert credentials.stat().st_mode & 0o077 == 0

        found = json.loads(shell.run("overlay", "status", "--json").stdout)
        assert (found["total"]["ready"], found["total"]["links_up"]) == (4, 8)
        shown = shell.run("overlay", "status").stdout
        assert "the first ends in 365 days (a,0)" in shown
        assert "failed logins" in shown
        assert "not in force" not in shown

        here, there = up.url("a,0"), up.url("b,1")
        reader = shell.start("sub", there, "x > 1", "--count", "1")
        assert reader.stderr is not None
        assert "subscribed at" in reader.stderr.readline()
        assert "every broker" in reader.stderr.readline()
        assert shell.run("pub", here, "x=2").stdout == "accepted: 1 notification\n"
        out, _ = reader.communicate(timeout=30)
        assert json.loads(out)["publisher"].startswith("operator/client-")

        access = shell.folder / "sec" / "access.toml"
        roles = access.read_text(encoding="utf-8")
        access.write_text(f"{roles}[roles.odd]\nsubscribe = 'x ='\n", encoding="utf-8")
        wait_until(lambda: "not in force at a,0" in shell.run("overlay", "status").stdout)
        access.write_text(roles, encoding="utf-8")

        elsewhere = ("--state", str(shell.folder / "nothing"))
        refused = shell.run("pub", here, "x=2", *elsewhere)
        assert refused.returncode == 1
        assert "--credentials FILE" in refused.stderr
        accepted = shell.run("pub", here, "x=2", "--credentials", str(credentials), *elsewhere)
        assert accepted.returncode == 0
        address = here.replace("octopis://", "octopis://bob:hunter2@")
        refused = shell.run("pub", address, "x=2")
        assert refused.returncode == 2
        assert "hunter2" not in refused.stderr + refused.stdout

        audits = "".join(path.read_text() for path in (shell.folder / "sec/audit").glob("*.jsonl"))
        assert audits.count('"event":"link"') == 8  # four links, each at both its ends
        assert up.stop()[0] == 0


def test_processes_that_die_come_back_with_their_links(shell: Shell):
    with shell.up("--config", shell.config(SMALL), "--secure", "sec", "--processes", "2") as up:
        before = shell.workers()
        os.kill(before[0], signal.SIGKILL)

        def is_whole() -> bool:
            found = json.loads(shell.run("overlay", "status", "--json").stdout or "{}")
            return bool(found) and found["total"]["links_up"] == 8

        wait_until(lambda: len(shell.workers()) == 2 and shell.workers() != before)
        wait_until(is_whole)
        assert up.stop()[0] == 0


def test_brokers_beyond_the_loopback_need_security_or_say_that_they_do_without(shell: Shell):
    config = shell.config(f'{SMALL}\n[brokers."a,0"]\nhost = "0.0.0.0"\n')
    refused = shell.run("overlay", "up", "--config", config, "--port", "0")
    assert refused.returncode == 2
    assert "--secure DIR" in refused.stderr
    assert "insecure = true" in refused.stderr
    with shell.up("--config", config, "--secure", "sec") as up:
        assert up.state["ready"]
    both = shell.config(f"insecure = true\n{SMALL}")
    refused = shell.run("overlay", "up", "--config", both, "--secure", "sec", "--port", "0")
    assert refused.returncode == 2
    assert "exclude each other" in refused.stderr
