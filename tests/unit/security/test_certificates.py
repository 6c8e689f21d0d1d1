"""What is issued: for whom, until when, by whom, and for what."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration
from octopis.security.certificates import (
    hosts_in,
    is_issued_by,
    issue_broker,
    issue_client,
    make_authority,
    now_utc,
    private_pem,
    read_authority,
    read_certificate,
    renew,
    uris_in,
)
from octopis.security.inventory import held_in
from support.certificates import A0, an_authority, odd, security_folder

AUTHORITY = an_authority()
NOW = now_utc()
NO_HOSTS = ["", "*", "*.example.org", ".org", "a..b", "a b", "a/b", "a\n", "é.org", "x" * 64]
NO_HOSTS += ["host:7400", "octopis://x", "fe80::1%eth0", "1.2.3", "1.2.3.4.5"]


def value(certificate: x509.Certificate, kind):
    return certificate.extensions.get_extension_for_class(kind)


def test_authority_signs_certificates_and_no_further_authorities():
    found = AUTHORITY.certificate
    basic, usage = value(found, x509.BasicConstraints), value(found, x509.KeyUsage)
    assert (basic.value.ca, basic.value.path_length, basic.critical) == (True, 0, True)
    assert (usage.value.key_cert_sign, usage.value.digital_signature) == (True, False)
    assert usage.critical
    assert isinstance(AUTHORITY.key.curve, ec.SECP256R1)


@pytest.mark.parametrize(
    ("issued", "uses"),
    [
        (
            issue_broker(AUTHORITY, A0, ["example.org", "10.0.0.7"], 30, NOW),
            {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH},
        ),
        (issue_client(AUTHORITY, "alice", 30, NOW), {ExtendedKeyUsageOID.CLIENT_AUTH}),
    ],
    ids=["broker", "client"],
)
def test_certificate_says_what_it_is_for(issued, uses: set[x509.ObjectIdentifier]):
    found = issued.certificate
    assert value(found, x509.BasicConstraints).value.ca is False
    assert value(found, x509.BasicConstraints).critical
    assert value(found, x509.KeyUsage).value.digital_signature
    assert not value(found, x509.KeyUsage).value.key_cert_sign
    assert set(value(found, x509.ExtendedKeyUsage).value) == uses
    own = value(AUTHORITY.certificate, x509.SubjectKeyIdentifier).value.digest
    assert value(found, x509.AuthorityKeyIdentifier).value.key_identifier == own
    assert isinstance(issued.key.curve, ec.SECP256R1)
    assert found.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert found.not_valid_after_utc == NOW + timedelta(days=30)
    assert is_issued_by(found, AUTHORITY.certificate)
    assert not is_issued_by(found, an_authority().certificate)


def test_broker_is_for_this_machine_and_for_all_hosts_that_are_said():
    issued = issue_broker(AUTHORITY, A0, ["example.org", "localhost", "10.0.0.7"], 30, NOW)
    assert uris_in(issued.certificate) == ("urn:octopis:broker:a,0",)
    assert sorted(hosts_in(issued.certificate)) == sorted(
        ["localhost", "127.0.0.1", "::1", "example.org", "10.0.0.7"]
    )


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused(host: str):
    with pytest.raises(InvalidConfiguration, match="is no host"):
        issue_broker(AUTHORITY, A0, [host], 30, NOW)


def test_nothing_outlives_its_authority():
    short = make_authority("short", 3, NOW)
    issued = issue_broker(short, A0, (), 365, NOW)
    assert issued.certificate.not_valid_after_utc == short.certificate.not_valid_after_utc
    with pytest.raises(InvalidConfiguration, match="has ended"):
        issue_broker(short, A0, (), 365, NOW + timedelta(days=3))


def test_days_beyond_the_calendar_are_refused():
    with pytest.raises(InvalidConfiguration, match="are too many"):
        make_authority("long", 10**9, NOW)


@settings(max_examples=20)
@given(st.text("ab.%/~é ²", min_size=1, max_size=90).filter(lambda text: text == text.strip()))
def test_long_and_odd_labels_can_be_certified(label: str):
    broker = BrokerId(f"x{label}", 1)
    issued = issue_broker(AUTHORITY, broker, (), 30, NOW)
    read = x509.load_der_x509_certificate(
        issued.certificate.public_bytes(serialization.Encoding.DER)
    )
    assert uris_in(read) == uris_in(issued.certificate)


def test_renewed_certificate_is_the_same_with_another_key_number_and_end():
    old = issue_broker(AUTHORITY, A0, ["example.org"], 10, NOW)
    new = renew(AUTHORITY, old.certificate, 20, NOW)
    assert new.certificate.subject == old.certificate.subject
    assert uris_in(new.certificate) == uris_in(old.certificate)
    assert hosts_in(new.certificate) == hosts_in(old.certificate)
    kind = x509.ExtendedKeyUsage
    assert value(new.certificate, kind).value == value(old.certificate, kind).value
    assert new.certificate.serial_number != old.certificate.serial_number
    assert new.key.public_key() != old.key.public_key()
    assert new.certificate.not_valid_after_utc == NOW + timedelta(days=20)


@pytest.mark.parametrize(
    "uris", [[], ["urn:octopis:broker:a,0", "urn:octopis:broker:b,0"], ["https://example.org"]]
)
def test_certificate_of_nobody_is_not_renewed(uris: list[str]):
    with pytest.raises(InvalidConfiguration, match="for nobody of ours"):
        renew(AUTHORITY, odd(AUTHORITY, uris).certificate, 20, NOW)


def test_authority_is_read_again_and_found_among_others_that_are_trusted(tmp_path: Path):
    certificate, key = tmp_path / "ca.pem", tmp_path / "ca.key"
    AUTHORITY.write(certificate, key)
    assert read_authority(certificate, key).certificate == AUTHORITY.certificate
    an_authority().write(tmp_path / "other.pem", tmp_path / "other.key")
    own = certificate.read_text()
    certificate.write_text((tmp_path / "other.pem").read_text() + own)
    assert read_authority(certificate, key).certificate == AUTHORITY.certificate


def test_authority_that_cannot_sign_says_why(tmp_path: Path):
    certificate, key = tmp_path / "ca.pem", tmp_path / "ca.key"
    AUTHORITY.write(certificate, key)
    key.write_bytes(private_pem(an_authority().key))
    with pytest.raises(InvalidConfiguration, match="is not the key of"):
        read_authority(certificate, key)
    key.write_text("rubbish")
    with pytest.raises(InvalidConfiguration, match="has no key in PEM"):
        read_authority(certificate, key)
    key.unlink()
    with pytest.raises(InvalidConfiguration, match=r"there is no .*ca\.key"):
        read_authority(certificate, key)
    certificate.write_text("rubbish")
    with pytest.raises(InvalidConfiguration, match="has no certificate in PEM"):
        read_certificate(certificate)


def test_inventory_tells_what_is_wrong_with_each_certificate(tmp_path: Path):
    wrong = [BrokerId("w", number) for number in range(5)]
    folder = security_folder(tmp_path / "s", AUTHORITY, [A0, *wrong])
    renamed, stranger, keyless, rubbish, revoked = map(folder.certificate, wrong)
    odd(AUTHORITY, ["urn:octopis:broker:w,00"]).write(renamed, renamed.with_suffix(".key"))
    issued = issue_broker(an_authority(), wrong[1], (), 30, NOW)
    issued.write(stranger, stranger.with_suffix(".key"))
    keyless.with_suffix(".key").unlink()
    rubbish.write_text("rubbish")
    number = read_certificate(revoked).serial_number
    problems = {each.name: each.problem for each in held_in(folder, [number])}
    assert problems["ca.pem"] == problems["a,0"] == problems["w,4"] == ""
    assert "is for urn:octopis:broker:w,00" in problems["w,0"]
    assert "signed by another authority" in problems["w,1"]
    assert "lacks its key" in problems["w,2"]
    assert "has no certificate in PEM" in problems["w,3"]
    assert [each.name for each in held_in(folder, [number]) if each.is_revoked] == ["w,4"]
