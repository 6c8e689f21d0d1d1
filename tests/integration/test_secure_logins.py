"""Who comes in at a broker with security, in every way that clients have, and who does not."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from scramp import ScramClient

from octopis.broker.settings import Durability
from octopis.client.client import connect
from octopis.client.credentials import Credentials
from octopis.client.sync_client import connect_sync
from octopis.core.routing import Algorithm
from octopis.core.wire.control import Refusal
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.core.wire.login import MECHANISM, Challenge, Scram, Token, encode_proof
from octopis.errors import ConnectionFailed, LoginFailed, NotPermitted
from octopis.pipeline.streaming.home import Home
from octopis.pipeline.streaming.staging import Place, staging_at
from octopis.security.bounds.failures import FailedLogins
from support.live import Brokers, client_of, line, overlay, ready, run_live, until
from support.secure import PASSWORD, Folder, client_as
from support.strangers import dials, stranger
from support.terminal import on_terminal

SCOT = line(2)
A, B = SCOT.brokers


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


@pytest.mark.parametrize("how", ["by_certificate", "by_password", "by_token"])
def test_every_login_lets_a_client_publish_and_subscribe_under_its_users_name(
    folder: Folder, how: str
):
    credentials: Credentials = getattr(folder, how)()
    user = {"by_certificate": "alice", "by_password": "bob", "by_token": "carol"}[how]

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            async with client_as(live[B], credentials) as there:
                async with client_as(live[A], credentials, client_id="app") as here:
                    assert here.id == f"{user}/app"
                    async with there.subscribe("x > 1") as stream:
                        await there.settled()
                        await here.publish({"x": 2})
                        received = await anext(aiter(stream))
                        assert received.publisher == f"{user}/app"
                    assert f"{user}/app" in (await here.status())["clients"]
            logins = [json.loads(text) for text in folder.audit(live[A]).splitlines()]
            assert [(each["user"], each["client"]) for each in logins if each["event"] == "login"]

    run_live(work())


def test_blocking_client_logs_in_with_a_credentials_file(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:

            def block() -> str:
                address = f"octopis://{live[A].address}"
                file = folder.files.credentials("alice")
                with connect_sync(address, credentials=str(file), client_id="b") as client:
                    client.publish({"x": 1})
                    return client.id

            assert await asyncio.to_thread(block) == "alice/b"

    run_live(work())


@pytest.mark.parametrize("how", ["by_certificate", "by_password", "by_token"])
def test_blocking_connection_of_spark_logs_in_and_is_known_by_its_user(
    folder: Folder, tmp_path: Path, how: str
):
    credentials: Credentials = getattr(folder, how)()
    said = {"ca": folder.files.ca}
    for name in ("certificate", "key", "user"):
        if (value := getattr(credentials, name)) is not None:
            said[name] = value
    for name in ("password", "token"):
        if (value := getattr(credentials, name)) is not None:
            (tmp_path / name).write_text(f"{value}\n", encoding="utf-8")
            said[f"{name}_file"] = tmp_path / name
    file = tmp_path / "credentials.toml"
    text = "".join(f'{name} = "{value}"\n' for name, value in said.items())
    file.write_text(text, encoding="utf-8")

    async def work() -> None:
        durability = Durability(str(tmp_path / "disk"))
        options = {"algorithm": Algorithm.TNR, "durability": durability}
        async with ready(folder.overlay(SCOT, **options)) as live:
            address = f"octopis://{live[A].address}"

            def read() -> str | None:
                home = Home(address, "", credentials=str(file))
                home.ask(lambda connection: connection.open("mine", "x > 0"))
                found = home.ask(lambda connection: connection.info("mine"))
                home.close()
                return None if found is None else found.name

            def stage() -> str:
                with staging_at(Place(live[A].address, "", str(file)), "q", keeps=False) as found:
                    found.limits()
                    return found.publisher

            def come_in_without() -> None:
                Home(address, "").ask(lambda connection: connection.info("mine"))

            assert await asyncio.to_thread(read) == "mine"
            assert "/spark-" in await asyncio.to_thread(stage)
            with pytest.raises(LoginFailed, match="speaks TLS alone"):
                await asyncio.to_thread(come_in_without)

    run_live(work())


def test_password_comes_from_the_environment_for_a_user_in_the_address(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("OCTOPIS_PASSWORD", PASSWORD)
    file = tmp_path / "trust.toml"
    file.write_text(f'ca = "{folder.files.ca}"\n', encoding="utf-8")
    monkeypatch.setenv("OCTOPIS_CREDENTIALS", str(file))

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            async with connect(f"octopis://bob@{live[A].address}", client_id="c") as client:
                assert client.id == "bob/c"

    run_live(work())


def test_password_of_a_user_in_the_address_is_asked_for_on_a_terminal_and_not_shown(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    file = tmp_path / "trust.toml"
    file.write_text(f'ca = "{folder.files.ca}"\n', encoding="utf-8")
    monkeypatch.setenv("OCTOPIS_CREDENTIALS", str(file))

    def publish(url: str, password: str) -> tuple[int, str]:
        with on_terminal(tmp_path, "pub", url, "x=1") as terminal:
            terminal.wait_until(lambda: "Password of bob:" in "\n".join(terminal.shown))
            terminal.type(f"{password}\n")
            return terminal.wait(), "\n".join(terminal.shown)

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            url = f"octopis://bob@{live[A].address}"
            status, shown = await asyncio.to_thread(publish, url, PASSWORD)
            assert (status, PASSWORD in shown) == (0, False), shown
            assert '"user":"bob","how":"password"' in folder.audit(live[A])
            status, shown = await asyncio.to_thread(publish, url, "no such word")
            assert (status, "no such word" in shown) == (1, False), shown
            assert "user or password is wrong" in shown

    run_live(work())


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda folder: folder.by_password("wrong"), "user or password is wrong"),
        (lambda folder: folder.by_password(user="nobody"), "user or password is wrong"),
        (lambda folder: folder.by_token(folder.token(audience="other")), "another audience"),
        (lambda folder: folder.by_token("no.token.this"), "token is not valid"),
        (lambda folder: Credentials(ca=folder.files.ca), "a login is needed here"),
        (lambda _: Credentials(), "not trusted"),
    ],
)
def test_login_that_fails_is_raised_at_once_in_words_and_not_tried_again(
    folder: Folder, make, reason: str
):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            with pytest.raises(LoginFailed, match=reason):
                async with client_as(live[A], make(folder), retry_s=60.0):
                    pass
            if "trusted" not in reason:
                assert '"login_failed"' in folder.audit(live[A])
                assert live[A].guard.failures.total == 1
            assert PASSWORD not in folder.audit(live[A])

    run_live(work(), limit_s=20)


def test_client_without_credentials_is_told_that_the_broker_speaks_tls_alone(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            with pytest.raises(LoginFailed, match=r"speaks TLS alone.*credentials"):
                async with client_of(live[A]):
                    pass
            with pytest.raises(LoginFailed, match="speaks TLS alone"):
                async with client_of(live[A]) as client:
                    await client.publish({"x": 1})

    run_live(work())


def test_client_with_credentials_never_goes_back_to_plaintext(folder: Folder):
    async def work() -> None:
        async with ready(overlay(SCOT)) as live:
            for credentials in (folder.by_password(), folder.by_token()):
                with pytest.raises(LoginFailed, match="does not speak TLS"):
                    async with client_as(live[A], credentials):
                        pass
            assert not live[A].clients

    run_live(work())


def test_credentials_at_the_port_for_neighbours_are_no_use(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            address = f"octopis://{live[A].link_address}"
            for credentials in (folder.by_certificate(), folder.by_token()):
                with pytest.raises(ConnectionFailed):
                    async with connect(address, credentials=credentials):
                        pass
            await until(lambda: "link_refused" in folder.audit(live[A]))

    run_live(work())


def test_failed_logins_make_passwords_of_their_address_wait_and_nothing_else(folder: Folder):
    """Whoever fails on purpose behind an address that others share keeps out no token of theirs."""

    async def took_s(live: Brokers, login: Token | Scram, source: str = "127.0.0.1") -> float:
        """Say hello, and prove a password where it is asked for; return how long the end took."""
        async with stranger(live[A].address, dials(folder), source) as peer:
            await peer.send(encode_hello(ClientHello("app", 10, login=login)))
            began = time.monotonic()
            answer = decode_answer((await peer.next_frames())[0])
            if isinstance(answer, Challenge):
                scram.set_server_first(answer.message.decode())
                proof = scram.get_client_final().encode()
                began = time.monotonic()
                await peer.send(encode_proof(proof))
                answer = decode_answer((await peer.next_frames())[0])
            assert isinstance(answer, Refusal if login is wrong else Welcome)
            return time.monotonic() - began

    scram = ScramClient([MECHANISM], "bob", PASSWORD)
    wrong = Token("not.one.at_all")
    by_password = Scram(MECHANISM, scram.get_client_first().encode())

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            await took_s(live, Token(folder.token()))
            for _ in range(5):  # nothing, 0.1 s, 0.2 s, 0.4 s, 0.8 s
                await took_s(live, wrong)
            password_s = await took_s(live, by_password)
            assert password_s >= 1.5
            assert await took_s(live, Token(folder.token())) < 1.5
            assert await took_s(live, wrong, "127.0.1.9") < 1.5
            assert live[A].status()["security"]["failed_logins"] == 6

    run_live(work())


def test_passwords_of_one_address_are_tried_one_after_the_other(folder: Folder):
    """However many connections guess at once, and however late in the greeting they do."""

    async def guess(live: Brokers, at_s: float) -> str:
        """Prove a password that is wrong so long after the challenge; return the error."""
        scram = ScramClient([MECHANISM], "bob", "wrong")
        async with stranger(live[A].address, dials(folder)) as peer:
            login = Scram(MECHANISM, scram.get_client_first().encode())
            await peer.send(encode_hello(ClientHello("app", 10, login=login)))
            challenge = decode_answer((await peer.next_frames())[0])
            assert isinstance(challenge, Challenge)
            scram.set_server_first(challenge.message.decode())
            await asyncio.sleep(at_s)
            await peer.send(encode_proof(scram.get_client_final().encode()))
            answer = decode_answer((await peer.next_frames())[0])
            assert isinstance(answer, Refusal)
            return answer.error

    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits={"hello_s": 3.0})) as live:
            now, guard = asyncio.get_running_loop().time, live[A].guard
            for _ in range(7):
                guard.failures.failed("127.0.0.1", now())
            errors = await asyncio.gather(*(guess(live, at_s) for at_s in [0.0] * 5 + [1.0] * 3))
            assert sorted(errors) == ["ConnectionFailed"] * 7 + ["LoginFailed"]
            assert guard.failures.total == 8
            assert "looked at one after the other" in folder.audit(live[A])
            async with client_as(live[A], folder.by_token()) as client:
                await client.publish({"x": 1})
            # Whoever has the right one is not sent away for good: it is tried again.
            guard.failures = FailedLogins()
            for _ in range(5):
                guard.failures.failed("127.0.0.1", now())
            while guard.failures.turn("127.0.0.1", now(), now() + 2.5) is not None:
                pass
            async with client_as(live[A], folder.by_password(), retry_s=20.0) as client:
                await client.publish({"x": 1})

    run_live(work())


def test_secrets_are_in_no_text_of_credentials(folder: Folder):
    shown = repr(folder.by_password()) + repr(folder.by_token("tok.en.x"))
    assert PASSWORD not in shown
    assert "tok.en.x" not in shown


def test_what_a_role_does_not_allow_is_in_the_audit_log(folder: Folder):
    folder.say(
        """
        [roles.reader]
        subscribe = "TRUE"
        [users.alice]
        roles = ["reader"]
        """
    )

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            async with client_as(live[A], folder.by_certificate(), client_id="app") as client:
                with pytest.raises(NotPermitted):
                    await client.publish({"x": 1})
            lines = [json.loads(text) for text in folder.audit(live[A]).splitlines()]
            (refused,) = [each for each in lines if each["event"] == "not_permitted"]
            assert (refused["user"], refused["client"]) == ("alice", "alice/app")
            assert "publish" in refused["reason"]

    run_live(work())
