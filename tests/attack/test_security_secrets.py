"""Passwords, tokens, what is kept of passwords, and clients' secrets: nobody is ever shown one.

Everything that anybody else could see is looked through: logs at their most talkative, audit logs,
errors, what commands print, the status, traces, what is on disk, and the processes' command lines.
"""

import asyncio
import base64
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from octopis.broker.settings import Durability
from octopis.broker.tracing import TraceOptions
from octopis.core.routing import Algorithm
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.core.wire.login import Proof, Scram, Token
from octopis.errors import OctopisError
from octopis.overlay.deployment import running
from octopis.security.access import read_access
from octopis.trace import Level
from support.live import Brokers, line, overlay, run_live, until
from support.overlay_command import SMALL, Shell
from support.secure import PASSWORD, Folder, client_as
from support.strangers import dials, stranger

SCOT = line(2)
A, B = SCOT.brokers
WRONG = "a wrong password that is as secret, being nearly right"
SECRET = "whoever-says-this-is-the-same-client"  # noqa: S105 - of a test


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.end()


def kept_of(folder: Folder) -> list[str]:
    """Return the parts of bob's line in access.toml, with which passwords can be tried."""
    stored = read_access(folder.files.access).passwords[0]
    parts = (stored.salt, stored.stored_key, stored.server_key)
    return [base64.b64encode(each).decode() for each in parts] + [each.hex() for each in parts]


def bytes_in(paths: Iterable[Path]) -> list[str]:
    """Return what is in files, whatever it is."""
    return [each.read_bytes().decode("latin-1") for each in paths if each.is_file()]


def nothing_of(secrets: list[str], shown: str) -> None:
    """Check that no secret is in a text, whichever way it was written."""
    for each in secrets:
        for form in (each, repr(each)[1:-1], json.dumps(each)[1:-1]):
            assert form not in shown, shown[max(0, shown.index(form) - 300) :][:600]


async def fail(client: object, errors: list[BaseException]) -> None:
    """Try to log in, and keep what is raised."""
    try:
        await client.open()  # type: ignore[attr-defined]
    except OctopisError as failure:
        errors.append(failure)
    else:
        raise AssertionError("that was no login")


async def all_ways(folder: Folder, live: Brokers, tokens: list[str]) -> list[BaseException]:
    """Log in by everything, rightly and wrongly, and do what is told and written down."""
    good, tampered, expired = tokens
    errors: list[BaseException] = []
    for credentials in (
        folder.by_password(WRONG),
        folder.by_token(tampered),
        folder.by_token(expired),
    ):
        await fail(client_as(live[A], credentials, secret=SECRET), errors)
    for credentials in (folder.by_password(), folder.by_token(good), folder.by_certificate()):
        async with client_as(live[A], credentials, client_id="app", secret=SECRET) as client:
            await client.open_durable("kept", "x > 0")
            async with client.subscribe("x > 0") as stream:
                await client.settled()
                await client.publish({"x": 1})
                await anext(stream)
            other = client_as(live[A], credentials, client_id="app", secret=f"{SECRET}!")
            await fail(other, errors)
            with suppress(OctopisError):
                await client.open_durable("kept", "x > 1")
    for said in (ClientHello("app\n", 1, secret=SECRET, login=Token(good)), ClientHello("", 1)):
        async with stranger(live[A].address, dials(folder)) as peer:  # a hello that is refused
            await peer.send(encode_hello(said))
            await peer.frames()
    async with stranger(live[A].address, dials(folder)) as peer:  # and one that ends in a fault
        await peer.send(encode_hello(ClientHello("raw", 9, secret=SECRET, login=Token(good))))
        assert isinstance(decode_answer((await peer.next_frames())[0]), Welcome)
        await peer.send(encode_hello(ClientHello("raw", 9, secret=SECRET, login=Token(good))))
        await peer.frames()
    return errors


def test_no_secret_is_in_logs_errors_audit_status_trace_or_on_disk(
    folder: Folder, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    expired = folder.token(now=0.0)
    tokens = [folder.token(), folder.token()[:-4] + "AAAA", expired]
    shown: list[str] = []
    durability = Durability(str(tmp_path / "disk"))
    options = {"algorithm": Algorithm.TNR, "durability": durability}

    async def work() -> None:
        asyncio.get_running_loop().set_debug(True)
        trace = TraceOptions(tmp_path / "trace", Level.FULL)
        async with running(folder.overlay(SCOT, **options), trace=trace) as live:
            for broker in live.values():
                await broker.ready.wait()
            for failure in await all_ways(folder, live, tokens):
                while failure is not None:
                    shown.append(f"{failure!s} {failure!r} {vars(failure)}")
                    failure = failure.__cause__ or failure.__context__  # noqa: PLW2901
            text = folder.files.access.read_text(encoding="utf-8")
            folder.say(text.replace("SCRAM-SHA-256$", "SCRAM-SHA-256$x"))  # the line is wrong now
            await until(lambda: all(each.guard.broken for each in live.values()))
            shown.extend(repr(each.status()) for each in live.values())
            folder.say(text)
            shown.extend(map(folder.audit, live.values()))

    kept = kept_of(folder)
    with caplog.at_level("DEBUG"):
        run_live(work())
    shown.append(caplog.text)
    rows = ds.dataset([str(each) for each in (tmp_path / "trace").rglob("*.parquet")])
    assert rows.files
    shown.extend(str(ds.dataset(each).to_table().to_pylist()) for each in rows.files)
    shown.extend(bytes_in((tmp_path / "disk").rglob("*")))
    everything = "\n".join(shown)
    for must in ("user or password is wrong", "is another client's here", "has expired", "x > 0"):
        assert must in everything, "what was looked for was not looked at"
    parts = [part for token in tokens for part in token.split(".")[1:]]
    nothing_of([PASSWORD, WRONG, SECRET, *tokens, *parts, *kept], everything)


@pytest.mark.parametrize(("is_secure", "mode"), [(True, 0o700), (False, 0o755)])
def test_traces_with_names_and_filters_are_for_their_owner_alone(
    folder: Folder, tmp_path: Path, is_secure: bool, mode: int
):
    configuration = folder.overlay(SCOT) if is_secure else overlay(SCOT)

    async def work() -> None:
        trace = TraceOptions(tmp_path / "trace", Level.FULL)
        async with running(configuration, trace=trace):
            pass

    before = os.umask(0o022)
    try:
        run_live(work())
    finally:
        os.umask(before)
    made = list((tmp_path / "trace").iterdir())
    assert len(made) == 2
    assert {stat.S_IMODE(each.stat().st_mode) for each in made} == {mode}


def test_no_secret_is_in_what_python_shows_of_what_holds_one(folder: Folder):
    token = folder.token()
    held = [
        folder.by_password(),
        folder.by_token(token),
        Token(token),
        ClientHello("app", 1, secret=SECRET, login=Token(token)),
        ClientHello("app", 1, secret=SECRET, login=Scram("SCRAM-SHA-256", b"n,,n=bob,r=x")),
        read_access(folder.files.access).passwords[0],
        read_access(folder.files.access).users["bob"],
    ]
    shown = " ".join(f"{each!r} {each!s} {[each]} {each:}" for each in held)
    nothing_of([PASSWORD, token, SECRET, *kept_of(folder)], shown)
    assert "the proof" not in repr(Proof(b"the proof"))


def test_no_secret_is_in_command_lines_output_or_logs_of_processes(shell: Shell, tmp_path: Path):
    """As anybody on the machine could see, by `ps` or in a log: with all commands that log in."""
    config = shell.config(SMALL)
    shell.run("security", "init", "sec", "--config", config)
    sec = tmp_path / "sec"
    line_of_bob = shell.start("security", "password", "bob", "--role", "operator")
    said, _ = line_of_bob.communicate(PASSWORD + "\n")
    with (sec / "access.toml").open("a", encoding="utf-8") as file:
        file.write(said)
    shell.run("security", "token", "sec", "bob", "--role", "operator", "--out", "bob.token")
    token = (tmp_path / "bob.token").read_text(encoding="utf-8").strip()
    (tmp_path / "bob.password").write_text(PASSWORD, encoding="utf-8")
    (tmp_path / "wrong.password").write_text(WRONG, encoding="utf-8")
    (tmp_path / "secret").write_text(SECRET, encoding="utf-8")
    ca = 'ca = "sec/ca.pem"\n'
    (tmp_path / "p.toml").write_text(f'{ca}user = "bob"\npassword_file = "bob.password"\n')
    (tmp_path / "w.toml").write_text(f'{ca}user = "bob"\npassword_file = "wrong.password"\n')
    (tmp_path / "t.toml").write_text(f'{ca}token_file = "bob.token"\n')
    shown: list[str] = []
    ups = ("--config", config, "--secure", "sec", "--durable", "disk")
    with shell.up(*ups, "--gateway", "--gateway-port", "0") as up:
        url = up.url("a,0")
        secret = ("--secret-file", "secret")

        def comes_in(credentials: str) -> bool:
            found = shell.run("pub", url, "x=2", "--credentials", credentials)
            shown.append(found.stdout + found.stderr)
            return found.returncode == 0

        assert comes_in("p.toml")
        assert comes_in("t.toml")
        assert not comes_in("w.toml")
        subs = [
            shell.start("sub", url, "x > 1", "--credentials", each, "--durable", "mine", *secret)
            for each in ("p.toml", "t.toml")
        ]
        for each in subs:
            assert each.stderr is not None
            shown.append(each.stderr.readline())
        lines = [(pid, Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in shell.processes()]
        assert sum(b"sub" in text for _, text in lines) >= 2
        shown.extend(text.replace(b"\0", b" ").decode() for _, text in lines)
        for words in (("overlay", "status", "--json"), ("durable", "list", "--json")):
            found = shell.run(*words)
            assert found.returncode == 0, found.stderr
            shown.append(found.stdout + found.stderr)
        for each in subs:
            each.terminate()
            shown.extend(each.communicate(timeout=30))
        shown.append(up.stop()[1])
    shown.extend(bytes_in([*shell.state.rglob("*"), *(sec / "audit").iterdir()]))
    everything = "\n".join(shown)
    assert "user or password is wrong" in everything
    nothing_of([PASSWORD, WRONG, SECRET, token, *token.split(".")[1:]], everything)
