"""Names and words with line ends in them: none makes a line of its own, wherever it is shown."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.settings import Durability
from octopis.cli.live.disk_output import print_durables
from octopis.cli.live.overlay_output import print_status
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.wire.control import Goodbye, encode_control
from octopis.core.wire.frames import FrameKind, encode, encode_frame
from octopis.core.wire.greeting import BrokerHello, ClientHello, encode_hello
from octopis.core.wire.login import MECHANISM, Scram, Token
from octopis.errors import InvalidConfiguration, OctopisError
from octopis.overlay.durables import ask_durables
from octopis.security.access import parse_access
from octopis.security.audit import verify
from octopis.security.certificates import issue_broker, issue_client
from support.live import Brokers, line, ready, run_live, until
from support.secure import DAYS, Folder, client_as
from support.strangers import dials, logged_in, now, stranger

SCOT = line(2)
A, B = SCOT.brokers
FORGED = "FORGED a line of its own"
NAME = f"x\r\n2026-01-01 ERROR {FORGED}\x1b[2J\u2028{FORGED}"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


def raw(**said: Any) -> bytes:
    """Return a hello that says just this."""
    return encode_frame(FrameKind.HELLO, encode({"magic": "octopis", "version": 1, **said}))


STRANGERS: dict[str, Callable[[], bytes]] = {
    "a client": lambda: encode_hello(ClientHello(NAME, 10)),
    "a role": lambda: raw(role=NAME),
    "a way to log in": lambda: raw(role="client", client="app", window=1, login={"by": NAME}),
    "a long way to log in": lambda: raw(role="client", client="a", login={"by": NAME * 100}),
    "a magic": lambda: raw(magic=NAME),
    "a token": lambda: encode_hello(ClientHello("app", 10, login=Token(NAME))),
    "a mechanism": lambda: encode_hello(ClientHello("app", 10, login=Scram(NAME[:32], b"n,,"))),
    "a user": lambda: encode_hello(
        ClientHello("app", 10, login=Scram(MECHANISM, b"n,,n=" + NAME.encode() + b",r=abc"))
    ),
    "a broker": lambda: encode_hello(BrokerHello(BrokerId(NAME, 0), B, NAME, NAME, NAME)),
}


def no_line_is_forged(text: str) -> None:
    """Check that what was said stands in no line but those that others begin."""
    assert FORGED in text
    for each in text.splitlines():  # at everything that some program takes for a line's end
        assert not each.startswith(("2026-01-01 ERROR FORGED", FORGED))
    assert "\x1b" not in text


@pytest.mark.parametrize("what", STRANGERS)
def test_log_injection_by_names_with_line_ends_before_the_login(
    folder: Folder, what: str, caplog: pytest.LogCaptureFixture
):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            for door, issued in (
                (live[B].address, None),
                (live[B].link_address, issue_client(folder.authority, "alice", DAYS, now())),
                (live[B].link_address, issue_broker(folder.authority, A, (), DAYS, now())),
            ):
                async with stranger(door, dials(folder, issued)) as peer:
                    await peer.send(STRANGERS[what]())
                    assert {each.kind for each in await peer.frames()} == {FrameKind.REFUSED}
            await until(lambda: "closing the connection" in caplog.text)

    run_live(work())
    no_line_is_forged(f"{caplog.text}\n seen: {FORGED}")
    audit = folder.files.audit(B)
    assert verify(audit).fault == ""
    lines = audit.read_text(encoding="utf-8").splitlines()
    assert lines
    events = {json.loads(each)["event"] for each in lines}
    assert events <= {"started", "link", "link_refused", "login_failed"}
    no_line_is_forged("\n".join([*lines, f" seen: {FORGED}"]))


async def say_all(folder: Folder, live: Brokers) -> None:
    """Put the name everywhere that a client with a login has a word for something."""
    async with client_as(live[A], folder.by_token()) as client:
        for name in (NAME, "printable"):
            with suppress(OctopisError):
                await client.open_durable(name, f"x = '{NAME}'")
            with suppress(OctopisError):
                await client.subscribe(f"x = '{NAME}'", names=[NAME]).open()
            with suppress(OctopisError):
                await client.stage(name, 0, 0, 0, [{"x": NAME, NAME: 1}])
        await client.publish({"x": NAME})
    for frame in (
        encode_frame(FrameKind.DURABLE, encode({"ask": NAME * 100_000})),
        encode_frame(FrameKind.SUBSCRIBE, encode({"dialect": NAME, "request": NAME})),
        encode_control(Goodbye(NAME)) + encode_frame(200, b""),
    ):
        async with logged_in(folder, live[A].address, instance=NAME[:64]) as peer:
            await peer.send(frame)
            await peer.frames()


def test_log_injection_by_names_with_line_ends_after_the_login(
    folder: Folder,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
):
    """In log, audit, and what commands print of the status and of durable subscriptions."""

    async def work() -> None:
        durability = Durability(str(tmp_path / "disk"))
        options = {"algorithm": Algorithm.TNR, "durability": durability}
        async with ready(folder.overlay(SCOT, **options)) as live:
            await say_all(folder, live)
            places = {broker.short: str(each.address) for broker, each in live.items()}
            found = await ask_durables(places, credentials=folder.by_certificate())
            assert [each.info.name for each in found.durables] == ["carol/printable"]
            print_durables("overlay", found.durables)
            statuses = {
                broker.short: {"address": NAME, **each.status()} for broker, each in live.items()
            }
            statuses[B.short] |= {"error": NAME}
            print_status("overlay", statuses, all_links=True)

    with caplog.at_level("DEBUG"):
        run_live(work())
    printed = capsys.readouterr().out
    assert "carol/printable" in printed
    no_line_is_forged(printed)
    no_line_is_forged(caplog.text)
    assert max(map(len, caplog.text.splitlines())) < 5_000
    assert verify(folder.files.audit(A)).fault == ""


def test_names_of_users_in_access_have_no_line_ends():
    """An administrator cannot be made to grant a role to a name that looks like another."""
    for name in ("alice\\nadmin", "alice\\u202enimda", "alice/admin", "alice "):
        with pytest.raises(InvalidConfiguration):
            parse_access(f'[users."{name}"]\nroles = []\n', "access.toml")
