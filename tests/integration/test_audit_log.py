"""What a broker writes into its audit log: enough to know who was in, with what, and why not."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.broker import LiveBroker
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from octopis.security.audit import verify
from support.live import ready, run_live, until
from support.secure import Folder, client_as

SCOT_OF_ONE = SCOT(AcyclicFactor(["a"], []), ConnectivityFactor.complete(1))
(A,) = SCOT_OF_ONE.brokers

BEFORE = """
[roles.reader]
subscribe = "TRUE"
[roles.writer]
publish = "TRUE"
[users.alice]
roles = ["reader", "writer"]
[users.carol]
roles = ["reader"]
"""
AFTER = """
[roles.reader]
subscribe = "x > 0"
[roles.guest]
[users.alice]
roles = ["reader"]
[users.carol]
roles = ["reader"]
[revoked]
tokens = ["t1"]
users = ["carol"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "sec", SCOT_OF_ONE)
    made.say(BEFORE)
    return made


def lines(folder: Folder, broker: LiveBroker, event: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in folder.audit(broker).splitlines()]
    return [line for line in found if line["event"] == event]


def digest(folder: Folder) -> str:
    return sha256(folder.files.access.read_bytes()).hexdigest()


def test_log_says_by_which_file_roles_are_and_what_became_another(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT_OF_ONE)) as live:
            (started,) = lines(folder, live[A], "started")
            assert started["access"] == digest(folder)
            folder.say(AFTER.replace("\n", "\r\n"))
            await until(lambda: lines(folder, live[A], "access_reloaded"))
            (said,) = lines(folder, live[A], "access_reloaded")
            assert said["access"] == digest(folder)
            assert said["roles"] == ["+guest", "-writer", "~reader"]
            assert said["users"] == ["~alice"]
            assert (said["revoked_tokens"], said["revoked_users"]) == (["+t1"], ["+carol"])
            assert "revoked_certificates" not in said
        assert not verify(folder.files.audit(A)).fault

    run_live(work())


def test_log_says_who_came_with_what_and_why_each_has_gone(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT_OF_ONE)) as live:
            async with client_as(live[A], folder.by_certificate(), client_id="app"):
                (login,) = lines(folder, live[A], "login")
                assert (login["user"], login["roles"]) == ("alice", ["reader", "writer"])
            await until(lambda: lines(folder, live[A], "session_ended"))
            async with client_as(live[A], folder.by_token(), client_id="eye"):
                folder.say(AFTER)
                await until(lambda: len(lines(folder, live[A], "session_ended")) == 2)
            left, thrown = lines(folder, live[A], "session_ended")
            assert (left["user"], left["client"]) == ("alice", "alice/app")
            assert (thrown["user"], thrown["client"]) == ("carol", "carol/eye")
            assert "carol" in thrown["reason"]
            assert left["reason"] != thrown["reason"]

    run_live(work())
