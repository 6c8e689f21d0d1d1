"""A broker's contexts: what they refuse at first, and how they follow their files."""

import logging
import os
import re
import ssl
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from octopis.errors import InvalidConfiguration
from octopis.security.certificates import (
    Issued,
    certificate_pem,
    issue_broker,
    now_utc,
    serial_of,
)
from octopis.security.contexts import Contexts
from octopis.security.folder import SecurityFolder
from support.certificates import A0, A1, an_authority, odd, put, security_folder


@pytest.fixture
def authority() -> Issued:
    return an_authority()


@pytest.fixture
def folder(tmp_path: Path, authority: Issued) -> SecurityFolder:
    return security_folder(tmp_path / "s", authority)


def new(authority: Issued) -> Issued:
    return issue_broker(authority, A0, (), 60, now_utc())


def shown_by(contexts: Contexts) -> ssl.SSLObject:
    """Shake hands in memory, and return what the dialler sees."""
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    dialler = contexts.dial.wrap_bio(one, other)
    listener = contexts.links.wrap_bio(other, one, server_side=True)
    for side in (dialler, listener, dialler, listener):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return dialler


def test_own_certificate_is_known(folder: SecurityFolder, authority: Issued):
    issued = new(authority)
    put(folder, A0, issued)
    own = Contexts(folder, A0).own
    assert own.serial == serial_of(issued.certificate)
    assert own.not_after == issued.certificate.not_valid_after_utc.timestamp()


def test_files_that_have_not_changed_change_nothing(folder: SecurityFolder):
    contexts = Contexts(folder, A0)
    before = contexts.clients, contexts.links, contexts.dial
    assert not contexts.refresh()
    assert (contexts.clients, contexts.links, contexts.dial) == before


def test_new_certificate_is_shown_to_new_connections(folder: SecurityFolder, authority: Issued):
    contexts = Contexts(folder, A0)
    standing = shown_by(contexts)
    issued = new(authority)
    put(folder, A0, issued)
    assert contexts.refresh()
    shown = shown_by(contexts).getpeercert()
    assert shown is not None
    assert shown["serialNumber"] == contexts.own.serial == serial_of(issued.certificate)
    assert standing.getpeercert() != shown  # what stands goes on with what it began with


def test_authority_that_is_added_is_trusted_from_then_on(folder: SecurityFolder, authority: Issued):
    contexts = Contexts(folder, A0)
    other = an_authority("next")
    pair = certificate_pem(authority.certificate) + certificate_pem(other.certificate)
    folder.ca.write_text(pair)
    assert contexts.refresh()
    put(folder, A0, new(other))
    assert contexts.refresh()
    assert not contexts.broken


def certificate_alone(folder: SecurityFolder, authority: Issued) -> None:
    folder.certificate(A0).write_text(certificate_pem(new(authority).certificate))


def rubbish(folder: SecurityFolder, _: Issued) -> None:
    folder.certificate(A0).write_text("no certificate")


def nothing(folder: SecurityFolder, _: Issued) -> None:
    folder.key(A0).unlink()


def another_authority(folder: SecurityFolder, _: Issued) -> None:
    put(folder, A0, new(an_authority()))


def another_broker(folder: SecurityFolder, authority: Issued) -> None:
    put(folder, A0, issue_broker(authority, A1, (), 60, now_utc()))


def two_brokers(folder: SecurityFolder, authority: Issued) -> None:
    put(folder, A0, odd(authority, ["urn:octopis:broker:a,0", "urn:octopis:broker:a,1"]))


def ended(folder: SecurityFolder, authority: Issued) -> None:
    end = now_utc() - timedelta(hours=1)
    put(folder, A0, odd(authority, ["urn:octopis:broker:a,0"], end=end))


def for_one_direction(folder: SecurityFolder, authority: Issued) -> None:
    uses = [ExtendedKeyUsageOID.SERVER_AUTH]
    put(folder, A0, odd(authority, ["urn:octopis:broker:a,0"], uses=uses))


def locked(folder: SecurityFolder, authority: Issued) -> None:
    issued = new(authority)
    put(folder, A0, issued)
    text = issued.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"a secret"),
    )
    folder.key(A0).write_bytes(text)


def no_authority(folder: SecurityFolder, _: Issued) -> None:
    folder.ca.write_text("")


BROKEN = [
    (certificate_alone, "is not the key of"),
    (rubbish, "no certificate and key in PEM"),
    (nothing, "No such file|lacks"),
    (another_authority, "does not hold before .*ca.pem: unable to get local issuer|signature"),
    (another_broker, "is not the certificate of a,0: .* urn:octopis:broker:a,1"),
    (two_brokers, "is not the certificate of a,0: .* urn:octopis:broker:a,1"),
    (ended, "does not hold before .*ca.pem: certificate has expired"),
    (for_one_direction, "does not hold before .*: (un)?suitable certificate purpose"),
    (locked, "is locked by a password"),
    (no_authority, "ca.pem has no certificate in PEM"),
]


@pytest.mark.parametrize(("spoil", "reason"), BROKEN)
def test_files_that_do_not_fit_are_refused_at_first(
    folder: SecurityFolder, authority: Issued, spoil, reason: str
):
    spoil(folder, authority)
    with pytest.raises(InvalidConfiguration, match=reason):
        Contexts(folder, A0)


@pytest.mark.parametrize(("spoil", "reason"), BROKEN)
def test_running_broker_goes_on_with_what_it_has_and_says_so_once(
    folder: SecurityFolder, authority: Issued, spoil, reason: str, caplog: pytest.LogCaptureFixture
):
    contexts = Contexts(folder, A0)
    before = contexts.own
    spoil(folder, authority)
    assert not contexts.refresh()
    assert not contexts.refresh()
    assert contexts.own == before
    assert shown_by(contexts).getpeercert() is not None
    assert re.search(reason, contexts.broken)
    (said,) = caplog.records
    assert said.levelno == logging.ERROR
    assert contexts.broken in said.getMessage()
    authority.write(folder.ca, folder.ca_key)
    put(folder, A0, new(authority))
    assert contexts.refresh()
    assert not contexts.broken
    assert contexts.own != before


# The folder


def test_folder_that_is_not_there_says_how_to_make_it(tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="make one with `octopis security init`"):
        SecurityFolder(tmp_path / "none").check([A0])


def test_folder_says_all_that_is_missing(folder: SecurityFolder):
    folder.check([A0, A1])
    folder.access.unlink()
    folder.key(A1).unlink()
    with pytest.raises(InvalidConfiguration, match=r"lacks access\.toml, brokers/a,1\.key: "):
        folder.check([A0, A1])
    with pytest.raises(InvalidConfiguration, match=r"lacks access\.toml: "):
        folder.check([A0])


def test_key_that_everybody_may_read_is_refused(folder: SecurityFolder):
    folder.key(A0).chmod(0o640)
    folder.check([A0])
    folder.key(A0).chmod(0o644)
    with pytest.raises(InvalidConfiguration, match=r"may use brokers/a,0\.key: .*chmod 600"):
        folder.check([A0])


WRITABLE = [
    ".",
    "access.toml",
    "ca.pem",
    "clients-ca.pem",
    "brokers",
    "brokers/a,0.pem",
    "tokens",
    "tokens/octopis.pem",
    "login.key",
    "ca.key",
    "token.key",
    "audit",
]


@pytest.mark.parametrize("name", WRITABLE)
def test_what_everybody_may_write_is_refused(folder: SecurityFolder, name: str):
    (folder.path / "audit").mkdir()
    folder.tokens.mkdir(exist_ok=True)
    for each in ("clients-ca.pem", "tokens/octopis.pem", "login.key", "token.key", "ca.key"):
        if not (folder.path / each).exists():
            (folder.path / each).write_bytes(folder.ca.read_bytes())
    folder.check([A0])
    path = folder.path / name
    path.chmod(path.stat().st_mode | 0o020)  # whom the group has in it, the operator has chosen
    folder.check([A0])
    path.chmod(path.stat().st_mode | 0o002)
    with pytest.raises(InvalidConfiguration, match=f"may write {path}, .*chmod o-w"):
        folder.check([A0])


def test_new_files_that_everybody_may_write_are_not_taken(
    folder: SecurityFolder, authority: Issued
):
    contexts = Contexts(folder, A0)
    before = contexts.own
    put(folder, A0, new(authority))
    folder.ca.chmod(0o666)
    assert not contexts.refresh()
    assert "may write" in contexts.broken
    assert contexts.own == before
    folder.ca.chmod(0o644)
    assert contexts.refresh()
    assert contexts.broken == ""
    assert contexts.own != before
    folder.path.chmod(0o777)
    assert not contexts.refresh()
    assert "may write" in contexts.broken


def test_pair_that_is_written_again_keeps_what_its_group_may_do(
    folder: SecurityFolder, authority: Issued
):
    folder.key(A0).chmod(0o640)
    put(folder, A0, new(authority))
    assert stat.S_IMODE(folder.key(A0).stat().st_mode) == 0o640


def test_key_is_its_owners_alone_whatever_the_mask(tmp_path: Path, authority: Issued):
    before = os.umask(0)
    try:
        authority.write(tmp_path / "x.pem", tmp_path / "x.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.key").stat().st_mode) == 0o600
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["x.key", "x.pem"]
