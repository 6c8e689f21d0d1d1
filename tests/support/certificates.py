"""Folders of certificates for tests, and certificates that are wrong in one way."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from octopis.core.model import BrokerId
from octopis.security.certificates import (
    Issued,
    issue_broker,
    issue_client,
    make_authority,
    now_utc,
)
from octopis.security.folder import SecurityFolder

A0, A1 = BrokerId("a", 0), BrokerId("a", 1)


def security_folder(
    path: Path, authority: Issued, brokers: Sequence[BrokerId] = (A0, A1)
) -> SecurityFolder:
    """Write what brokers need of an authority."""
    path.mkdir(parents=True, exist_ok=True)
    folder = SecurityFolder(path)
    authority.write(folder.ca, folder.ca_key)
    folder.access.write_text("")
    for broker in brokers:
        put(folder, broker, issue_broker(authority, broker, (), 30, now_utc()))
    return folder


def put(folder: SecurityFolder, broker: BrokerId, issued: Issued) -> None:
    """Give a broker a certificate."""
    issued.write(folder.certificate(broker), folder.key(broker))


def put_client(folder: SecurityFolder, name: str, authority: Issued) -> Issued:
    """Give a user a certificate."""
    issued = issue_client(authority, name, 30, now_utc())
    issued.write(folder.client_certificate(name), folder.client_key(name))
    return issued


def odd(
    authority: Issued,
    uris: Sequence[str] = (),
    hosts: Sequence[str] = (),
    *,
    called: str = "odd",
    says_by_whom: bool = True,
    start: datetime | None = None,
    end: datetime | None = None,
    uses: Sequence[x509.ObjectIdentifier] = (
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    ),
) -> Issued:
    """Return a certificate with whatever names and times, signed as it should be."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [
        *map(x509.UniformResourceIdentifier, uris),
        *map(x509.DNSName, hosts or ("localhost",)),
    ]
    own = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    signer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own.value)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, called)]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start or now_utc() - timedelta(days=2))
        .not_valid_after(end or now_utc() + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    )
    if says_by_whom:
        builder = builder.add_extension(signer, critical=False)
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def an_authority(name: str = "test") -> Issued:
    """Return an authority that has just been made."""
    return make_authority(name, 60, now_utc())
