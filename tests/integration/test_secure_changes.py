"""What ends sessions at brokers with security, and what of their folder counts while it changes."""

import asyncio
import time
from pathlib import Path

import pytest

from octopis.client.credentials import Credentials
from octopis.errors import LoginFailed
from octopis.security.tokens import LEEWAY_S
from support.live import line, ready, run_live, until
from support.secure import Folder, client_as

SCOT = line(2)
A, B = SCOT.brokers


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


def ends_soon(folder: Folder) -> str:
    """Return a token that ends in two seconds, the leeway for clocks included."""
    return folder.token(now=time.time() - 600.0, lifetime_s=600.0 - LEEWAY_S + 2.0)


def test_session_ends_when_its_token_does_and_goes_on_with_a_new_one(
    folder: Folder, tmp_path: Path
):
    file = tmp_path / "token"
    file.write_text(ends_soon(folder), encoding="utf-8")
    credentials = Credentials(ca=folder.files.ca, token_file=file)

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            async with client_as(live[A], credentials, client_id="app") as client:
                gaps: list[object] = []
                async with client.subscribe("x > 0", on_gap=gaps.append) as stream:
                    file.write_text(folder.token(), encoding="utf-8")
                    first = next(iter(live[A].clients.values()))
                    await until(lambda: live[A].clients.get("carol/app") not in {first, None})
                    assert "session_ended" in folder.audit(live[A])
                    await client.settled()
                    await client.publish({"x": 1})
                    assert (await anext(aiter(stream))).attributes == {"x": 1}
                    assert gaps

    run_live(work())


def test_session_whose_token_ended_is_over_where_there_is_no_new_one(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            async with client_as(live[A], folder.by_token(ends_soon(folder))) as client:
                await until(lambda: client._failure)
                with pytest.raises(LoginFailed, match="expired"):
                    await client.publish({"x": 1})
            assert not live[A].clients

    run_live(work())


def test_session_ends_when_the_key_of_its_token_is_taken_away(folder: Folder):
    """As whoever has stolen the key can log in first, and have an end that is far away."""
    public = folder.files.tokens / "octopis.pem"

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            stolen = folder.by_token(folder.token("mallory", roles=["all"]))
            async with (
                client_as(live[A], folder.by_certificate()) as other,
                client_as(live[A], stolen, reconnect_s=0),
            ):
                assert len(live[A].clients) == 2
                public.unlink()
                await until(lambda: len(live[A].clients) == 1)
                assert "roles_changed" in folder.audit(live[A])
                await other.publish({"x": 1})

    run_live(work())


@pytest.mark.parametrize(("warn_days", "is_warned"), [(30.0, True), (29.0, False)])
def test_end_of_a_brokers_certificate_is_in_its_status_and_warned_of_before(
    folder: Folder, warn_days: float, is_warned: bool, caplog: pytest.LogCaptureFixture
):
    async def work() -> None:
        async with ready(folder.overlay(SCOT, security={"warn_days": warn_days})) as live:
            async with client_as(live[A], folder.by_certificate(), observer=True) as client:
                said = (await client.status())["security"]
            assert 29.9 < said["certificate_days"] <= 30
            assert said["certificate"] == live[A].guard.contexts.own.serial
            assert said["broken"] == []
            before = live[A].guard.access
            folder.say(folder.files.access.read_text(encoding="utf-8") + "\n")
            await until(lambda: live[A].guard.access is not before)  # it has looked after all

    with caplog.at_level("WARNING"):
        run_live(work())
    said = [each for each in caplog.messages if "ends in 30.0 days: octopis security renew" in each]
    assert len(said) == (2 if is_warned else 0), "once by each broker"


def test_broken_key_keeps_nobody_in_who_is_revoked_and_broken_roles_no_key(folder: Folder):
    """Who is in a hurry to shut somebody out makes mistakes: each file counts by itself."""
    roles = folder.files.access.read_text(encoding="utf-8")
    odd = folder.files.tokens / "odd.pem"

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            guard = live[A].guard
            async with (
                client_as(live[A], folder.by_certificate()) as other,
                client_as(live[A], folder.by_password(), reconnect_s=0),
                client_as(live[A], folder.by_token(), reconnect_s=0),
            ):
                odd.write_bytes(folder.files.token_key.read_bytes())  # the private one, by mistake
                folder.say(f'{roles}[revoked]\nusers = ["bob"]\n')
                await until(lambda: len(live[A].clients) == 2)
                assert "is a private key" in guard.broken
                odd.unlink()
                (folder.files.tokens / "octopis.pem").unlink()
                folder.say("[roles")
                await until(lambda: len(live[A].clients) == 1)
                assert "not valid TOML" in guard.broken
                assert "access_broken" in folder.audit(live[A])
                await other.publish({"x": 1})
                folder.say(roles)
                await until(lambda: not guard.broken)

    run_live(work())


@pytest.mark.parametrize("name", [".", "access.toml", "tokens", "tokens/octopis.pem"])
def test_roles_and_keys_that_everybody_may_write_are_not_taken_meanwhile(folder: Folder, name: str):
    """Whoever has an account on the machine could let himself in."""
    path = folder.path / name
    before = path.stat().st_mode
    more = folder.files.access.read_text(encoding="utf-8") + '[users.mallory]\nroles = ["all"]\n'

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            guard = live[A].guard
            path.chmod(before | 0o002)
            await until(lambda: f"everybody on this machine may write {path}" in guard.broken)
            assert guard.broken in live[A].status()["security"]["broken"]
            assert "access_broken" in folder.audit(live[A])
            if name in {".", "access.toml"}:
                folder.say(more)
                await asyncio.sleep(0.6)
                assert "mallory" not in guard.access.users
            path.chmod(before)
            folder.say(more)
            await until(lambda: "mallory" in guard.access.users)
            await until(lambda: not guard.broken)

    run_live(work())


def test_secrets_that_everybody_may_read_are_warned_of_at_start_and_when_it_comes_to_that(
    folder: Folder, caplog: pytest.LogCaptureFixture
):
    folder.files.token_key.chmod(0o644)

    def said(path: Path) -> int:
        return sum("may read" in each and str(path) in each for each in caplog.messages)

    async def work() -> None:
        async with ready(folder.overlay(SCOT)):
            assert said(folder.files.token_key) == 2, "once by each broker"
            assert said(folder.files.access) == 0
            folder.files.access.chmod(0o604)
            await until(lambda: said(folder.files.access) == 2)
            await asyncio.sleep(0.5)
            assert said(folder.files.access) == 2

    with caplog.at_level("WARNING"):
        run_live(work())


def test_half_of_a_file_that_is_being_written_is_not_taken(folder: Folder):
    """An access.toml that is cut off before its denials makes sense, and would widen roles."""
    whole = folder.files.access.read_text(encoding="utf-8")

    async def work() -> None:
        security = {"reload_s": 0.3}
        async with ready(folder.overlay(SCOT, security=security)) as live:
            async with client_as(live[A], folder.by_certificate()) as client:
                first = live[A].guard.access
                for part in range(60):  # for some times as long as a look takes
                    folder.say(whole + "# denials" * (part + 1) if part < 59 else whole)
                    await asyncio.sleep(0.02)
                    assert live[A].guard.access is first
                await until(lambda: live[A].guard.access is not first)
                await client.publish({"x": 1})

    run_live(work())
