"""Certificates made here: an authority, brokers', users', and all of these again before they end.

For an overlay that has no PKI of its own; brokers take certificates of any other as well. Keys are
of ECDSA on the curve P-256. What is issued here never outlives its authority.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration
from octopis.files import fill_private, whole_file
from octopis.security.names import broker_in, broker_uri, client_in, client_uri, serial_text

HOSTS = ("localhost", "127.0.0.1", "::1")
"""Where a broker of this machine is dialled."""

_Uses = Sequence[x509.ObjectIdentifier]
_SKEW = timedelta(minutes=5)
_COMMON_NAME_MAX = 64
_HOST_MAX = 253
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_-]{1,63})*")
_BROKERS_USES: _Uses = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
_CLIENTS_USES: _Uses = (ExtendedKeyUsageOID.CLIENT_AUTH,)


class Issued(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def write(self, certificate: Path, key: Path) -> None:
        """Write both as PEM, the key for its owner alone; they change at almost one moment."""
        with whole_file(key) as key_draft, whole_file(certificate) as certificate_draft:
            fill_private(key_draft, key, private_pem(self.key))
            text = certificate_pem(self.certificate)
            fill_private(certificate_draft, certificate, text.encode(), mode=0o644)


# Making


def make_authority(name: str, days: int, now: datetime) -> Issued:
    """Return an authority that signs certificates, and no further authorities."""
    key = ec.generate_private_key(ec.SECP256R1())
    called = _called(f"OctopiS {name}")
    builder = _builder(called, called, key.public_key(), now, _end(now, days))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_may_sign(certificates=True), critical=True)
    return Issued(builder.sign(key, hashes.SHA256()), key)


def issue_broker(
    authority: Issued, broker: BrokerId, hosts: Iterable[str], days: int, now: datetime
) -> Issued:
    """Return a broker's certificate, for all `hosts` where it is dialled and for this machine."""
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(broker_uri(broker))]
    names += [host_name(host) for host in dict.fromkeys((*HOSTS, *hosts))]
    alternatives = x509.SubjectAlternativeName(names)
    called = _called(f"broker {broker.short}")
    return _issue(authority, called, alternatives, _BROKERS_USES, days, now)


def issue_client(authority: Issued, name: str, days: int, now: datetime) -> Issued:
    """Return a user's certificate; as a broker it is worth nothing."""
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(client_uri(name))])
    return _issue(authority, _called(f"client {name}"), names, _CLIENTS_USES, days, now)


def renew(authority: Issued, old: x509.Certificate, days: int, now: datetime) -> Issued:
    """Return the same certificate with another key, another number and a later end.

    Raises InvalidConfiguration where it is neither a broker's nor a user's.
    """
    uris = uris_in(old)
    if broker_in(uris) is not None:
        uses = _BROKERS_USES
    elif client_in(uris) is not None:
        uses = _CLIENTS_USES
    else:
        raise InvalidConfiguration(f"it is for nobody of ours: it names {' '.join(uris) or 'none'}")
    found = old.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return _issue(authority, old.subject, found.value, uses, days, now)


def host_name(host: str) -> x509.GeneralName:
    """Return a host's name or address for a certificate, or raise InvalidConfiguration."""
    try:
        if "%" not in host:  # a zone means something on one machine only
            return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if len(host) > _HOST_MAX or not _HOST.fullmatch(host) or re.fullmatch(r"[\d.]+", host):
        raise InvalidConfiguration(
            f"{host!r} is no host: give a name as in broker-1.example.org or an address, and no "
            "port, star or zone"
        )
    return x509.DNSName(host)


def _issue(  # noqa: PLR0913, PLR0917 - what a certificate says
    authority: Issued,
    subject: x509.Name,
    names: x509.SubjectAlternativeName,
    uses: _Uses,
    days: int,
    now: datetime,
) -> Issued:
    signer = authority.certificate
    if now >= signer.not_valid_after_utc:
        raise InvalidConfiguration(
            f"the authority {common_name(signer)} has ended: make a new folder with "
            "`octopis security init`"
        )
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(_end(now, days), signer.not_valid_after_utc)
    builder = _builder(subject, signer.subject, key.public_key(), now, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_may_sign(certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    own = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)
    builder = builder.add_extension(signed_by, critical=False)
    builder = builder.add_extension(names, critical=False)
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    """Return what all certificates have; machines whose clocks are a little behind take them."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _end(now: datetime, days: int) -> datetime:
    try:
        return now + timedelta(days=days)
    except OverflowError as failure:
        raise InvalidConfiguration(f"{days:,} days are too many") from failure


def _may_sign(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificates,
        crl_sign=certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _called(text: str) -> x509.Name:
    """Return a subject: for people to read, nothing is decided by it."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_COMMON_NAME_MAX])])


# Reading


def read_certificate(path: Path) -> x509.Certificate:
    """Return the first certificate in a file, or raise InvalidConfiguration."""
    return read_all(path)[0]


def read_all(path: Path) -> list[x509.Certificate]:
    """Return all certificates in a file, or raise InvalidConfiguration."""
    try:
        return x509.load_pem_x509_certificates(_bytes(path))
    except ValueError as failure:
        raise InvalidConfiguration(f"{path} has no certificate in PEM") from failure


def read_authority(certificate: Path, key: Path) -> Issued:
    """Return the authority that `init` has made, or raise InvalidConfiguration."""
    if not key.exists():
        raise InvalidConfiguration(
            f"there is no {key}: only where `octopis security init` made the authority, and its "
            "key still is, certificates can be issued"
        )
    try:
        loaded = serialization.load_pem_private_key(_bytes(key), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as failure:
        raise InvalidConfiguration(f"{key} has no key in PEM without a password") from failure
    if isinstance(loaded, ec.EllipticCurvePrivateKey):
        for found in read_all(certificate):  # others may be trusted beside it
            if found.public_key() == loaded.public_key():
                return Issued(found, loaded)
    raise InvalidConfiguration(f"{key} is not the key of {certificate}")


def is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Tell whether an authority itself has signed a certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def uris_in(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the URIs that a certificate is for, verified or not."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return ()
    return tuple(found.value.get_values_for_type(x509.UniformResourceIdentifier))


def common_name(certificate: x509.Certificate) -> str:
    """Return what a certificate calls itself, for people to read."""
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else certificate.subject.rfc4514_string()


def hosts_in(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the hosts that a certificate is for, verified or not."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return (*found.get_values_for_type(x509.DNSName), *addresses)


def serial_of(certificate: x509.Certificate) -> str:
    """Return the number that a certificate is revoked by."""
    return serial_text(certificate.serial_number)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure


# Keys


def certificate_pem(certificate: x509.Certificate) -> str:
    """Return a certificate as text."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def private_pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    """Return a key as text: whoever has it is whom it stands for."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def make_token_keys() -> tuple[bytes, bytes]:
    """Return a private and a public key for tokens (Ed25519), as PEM."""
    key = ed25519.Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private_pem(key), public


def now_utc() -> datetime:
    """Return the time that certificates are issued at: whole seconds, as they have them."""
    return datetime.now(UTC).replace(microsecond=0)
