"""Passwords, tokens, checks of access.toml and of audit logs from the shell."""

import io
import json
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from octopis.core.wire.login import Token
from octopis.security.access import parse_access, read_access
from octopis.security.audit import AuditLog
from octopis.security.folder import SecurityFolder
from octopis.security.identity import Identity
from octopis.security.login import Logins
from support.logins import ROLES
from support.terminal import on_terminal

Run = Callable[..., tuple[int, str, str]]
SECRET = "correct horse battery"  # noqa: S105 - made up


@pytest.fixture
def folder(octopis: Run, tmp_path: Path) -> SecurityFolder:
    """A new security folder, with two users more."""
    path = tmp_path / "security"
    status, _, error = octopis("security", "init", str(path), "--topology", "figure-7")
    assert (status, error) == (0, "")
    found = SecurityFolder(path)
    more = f'{ROLES}force = {{ tenant = "a" }}\n[users.bob]\nroles = ["auditor"]\n'
    found.access.write_text(found.access.read_text() + more)
    return found


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


# password


def test_password_on_standard_input_gives_a_user_for_access_toml(
    octopis: Run, monkeypatch: pytest.MonkeyPatch
):
    typed(monkeypatch, f"{SECRET}\nmore\n")
    status, printed, error = octopis("security", "password", "Zoë b", "--role", "t", "--role", "u")
    assert (status, error) == (0, "")
    user = parse_access(f"[roles.t]\n[roles.u]\n{printed}", "").user("Zoë b")
    assert user is not None
    assert user.roles == ("t", "u")
    assert user.password is not None
    assert user.password.iterations == 50_000
    assert SECRET not in printed


def test_password_without_a_role_gives_the_line_alone(
    octopis: Run, monkeypatch: pytest.MonkeyPatch
):
    typed(monkeypatch, "short\r\n")
    status, printed, error = octopis("security", "password", "al", "--iterations", "4096")
    assert status == 0
    assert re.fullmatch(r'password = "SCRAM-SHA-256\$4096:[^\n]*"\n', printed)
    assert "fewer than 12 characters" in error
    assert "short\n" not in printed


def test_password_is_asked_for_twice_on_a_terminal_and_not_shown(tmp_path: Path):
    for again, status, said in ((SECRET, 0, 'password = "SCRAM'), ("other", 2, "passwords differ")):
        with on_terminal(tmp_path, "security", "password", "alice") as terminal:
            for prompt, answer in (("Password of alice:", SECRET), ("Again:", again)):
                terminal.wait_until(lambda prompt=prompt: prompt in "\n".join(terminal.shown))
                terminal.type(f"{answer}\n")
            assert terminal.wait() == status
            text = "\n".join(terminal.shown)
            assert said in text
            assert SECRET not in text
            assert "other" not in text


@pytest.mark.parametrize(
    ("words", "typed_in", "reason"),
    [
        (["alice"], "", "there is no password on standard input"),
        (["a/b"], "x\n", "a user cannot be called 'a/b'"),
        (["alice", "--role", "a\n"], "x\n", "a role cannot be called"),
        (["alice", "--iterations", "100"], "x\n", "greater than or equal to 4096"),
        (["alice", SECRET], "x\n", "unexpected extra argument"),
        (["alice"], "a\x00b\n", "characters that no password may have"),
    ],
)
def test_what_gives_no_password_is_said(
    octopis: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], typed_in: str, reason: str
):
    typed(monkeypatch, typed_in)
    status, printed, error = octopis("security", "password", *words)
    assert (status, printed) == (2, "")
    assert reason.lower() in error.lower()


# token


def let_in(folder: SecurityFolder, token: str, audience: str = "octopis") -> Identity:
    access = read_access(folder.access)
    found = Logins(lambda: access, folder, audience).begin(Token(token), None, time.time())
    assert isinstance(found, Identity)
    return found


def test_token_is_printed_alone_and_lets_its_user_in(octopis: Run, folder: SecurityFolder):
    status, printed, error = octopis("security", "token", str(folder.path), "bob")
    assert status == 0
    found = let_in(folder, printed.removesuffix("\n"))
    assert (found.name, found.roles, found.has_own_roles) == ("bob", ("auditor",), False)
    assert f"write {found.credential} under revoked.tokens in {folder.access}" in error
    assert found.expires_at == pytest.approx(time.time() + 24 * 3600, abs=60)


def test_token_with_roles_hours_and_audience_in_a_file(
    octopis: Run, folder: SecurityFolder, tmp_path: Path
):
    out = tmp_path / "new" / "carol.token"
    words = ["--role", "trader", "--hours", "0.5", "--audience", "mine", "--out", str(out)]
    status, printed, error = octopis("security", "token", str(folder.path), "carol", *words)
    assert (status, printed) == (0, "")
    assert "revoked.tokens" in error
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    found = let_in(folder, out.read_text().strip(), "mine")
    assert (found.name, found.roles) == ("carol", ("trader",))
    assert found.expires_at == pytest.approx(time.time() + 1800, abs=60)
    status, _, error = octopis("security", "token", str(folder.path), "carol", *words)
    assert (status, "is there already" in error) == (2, True)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nobody"], "has no user 'nobody', or has revoked it"),
        (["bob", "--role", "audtor"], "there is no role 'audtor'; did you mean 'auditor'?"),
        (["bob", "--hours", "100000"], "at most 366 days"),
        (["a/b", "--role", "auditor"], "a user cannot be called"),
        (["bob", "--audience", ""], "needs an audience"),
    ],
)
def test_token_that_no_broker_would_take_is_not_made(
    octopis: Run, folder: SecurityFolder, words: list[str], reason: str
):
    status, printed, error = octopis("security", "token", str(folder.path), *words)
    assert (status, printed) == (2, "")
    assert reason in error


def test_token_key_that_brokers_do_not_trust_is_said(octopis: Run, folder: SecurityFolder):
    (folder.tokens / "octopis.pem").unlink()
    status, _, error = octopis("security", "token", str(folder.path), "bob")
    assert (status, "no broker would take it" in error) == (2, True)
    folder.token_key.unlink()
    status, _, error = octopis("security", "token", str(folder.path), "bob")
    assert (status, "cannot read" in error) == (2, True)


# check


def test_check_shows_what_roles_come_to(octopis: Run, folder: SecurityFolder):
    status, printed, error = octopis("security", "check", str(folder.path), "--json")
    assert (status, error) == (0, "")
    said = json.loads(printed)
    users = {user.pop("user"): user for user in said["users"]}
    assert users["bob"] == {
        "roles": ["auditor"],
        "revoked": False,
        "password": False,
        "publish": None,
        "subscribe": "secret = FALSE",
        "force": {"tenant": "a"},
        "durable": False,
        "status": True,
    }
    assert users["operator"]["publish"] == "TRUE"
    assert [each.split(":")[0] for each in said["warnings"]] == [
        "nobody has the role 'trader', but for tokens that say so",
        "roles.auditor.deny_subscribe asks for secret",
    ]
    status, printed, _ = octopis("security", "check", str(folder.path))
    assert status == 0
    words = " ".join(printed.split())
    assert "bob auditor certificate, token nothing secret = FALSE tenant = 'a' no yes" in words


def test_check_minds_files_that_others_may_read_and_a_missing_secret(
    octopis: Run, folder: SecurityFolder
):
    folder.access.chmod(0o644)
    folder.login_key.unlink()
    folder.token_key.chmod(0o604)
    _, printed, _ = octopis("security", "check", str(folder.path))
    words = " ".join(printed.split())
    assert f"everybody on this machine may read {folder.token_key}" in words.replace(" -", "-")
    assert "mind: others than the owner may read or write" in words
    assert "strangers can tell which users there are" in words


@pytest.mark.parametrize("name", [".", "access.toml", "tokens", "login.key"])
def test_check_refuses_what_everybody_may_write(octopis: Run, folder: SecurityFolder, name: str):
    path = folder.path / name
    path.chmod(path.stat().st_mode | 0o002)
    status, printed, error = octopis("security", "check", str(folder.path))
    assert (status, printed) == (2, "")
    assert f"everybody on this machine may write {path}" in error


def test_check_says_what_is_wrong_and_where(octopis: Run, folder: SecurityFolder):
    folder.access.write_text('[roles.t]\nsubscribe = "price <"\n')
    status, printed, error = octopis("security", "check", str(folder.path))
    assert (status, printed) == (2, "")
    assert error.startswith(f"octopis: {folder.access}: roles.t.subscribe: ")
    status, _, error = octopis("security", "check", str(folder.path / "none"))
    assert (status, "is no security folder" in error) == (2, True)


# audit


def test_audit_log_is_verified_and_tampering_told(octopis: Run, tmp_path: Path):
    path = tmp_path / "log.jsonl"
    log = AuditLog(path)
    for name in ("alice", "bob"):
        log.write("login", user=name)
    log.close()
    status, printed, _ = octopis("security", "audit", "verify", str(path))
    assert (status, printed.startswith("ok: ")) == (0, True)
    digest = json.loads(path.read_text().splitlines()[-1])["digest"]
    assert digest in printed
    status, printed, _ = octopis("security", "audit", "verify", str(path), "--noted", "0" * 64)
    assert (status, "cut off, or made anew" in printed) == (1, True)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    status, printed, _ = octopis("security", "audit", "verify", str(path))
    assert (status, "no sign of tampering" in printed) == (0, True)
    path.write_bytes(whole.replace(b"alice", b"carol"))
    status, printed, _ = octopis("security", "audit", "verify", str(path), "--json")
    assert status == 1
    assert json.loads(printed)["fault"] == "line 1: it was changed: its digest is another one"
    status, _, error = octopis("security", "audit", "verify", str(tmp_path / "none"))
    assert (status, "cannot read" in error) == (2, True)
