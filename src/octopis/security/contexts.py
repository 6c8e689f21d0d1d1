"""How a broker speaks TLS: to its clients, to neighbours that dial it, and to those that it dials.

TLS 1.3 and nothing older, so there is no compression either. No session tickets: every connection
proves itself anew, so neither a certificate that has ended nor one that is revoked comes back in
through an old session.

A chain that leads to ca.pem says only that somebody is one of ours. Who it is, the caller must ask
after the handshake (`names.broker_named`, `names.client_named`): no context does so. A dialler has
finished its handshake before the other side has looked at its certificate: it is taken in once it
has been answered.
"""

import logging
import ssl
from pathlib import Path
from typing import NamedTuple

from octopis.core.model import BrokerId
from octopis.core.wire.greeting import ALPN
from octopis.errors import InvalidConfiguration
from octopis.security.folder import SecurityFolder
from octopis.security.modes import check_written_by_few, mode_of, state_of
from octopis.security.names import PeerCertificate, broker_named, names_of, not_after, serial

_log = logging.getLogger(__name__)


def listener_context(folder: SecurityFolder, broker: BrokerId) -> ssl.SSLContext:
    """Return how a broker takes clients in: they may have a certificate, then it must be right."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, folder, broker)
    _trust(context, folder.clients_ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def link_listener_context(folder: SecurityFolder, broker: BrokerId) -> ssl.SSLContext:
    """Return how a broker takes neighbours in: nobody without a certificate."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, folder, broker)
    _trust(context, folder.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def link_dial_context(folder: SecurityFolder, broker: BrokerId) -> ssl.SSLContext:
    """Return how a broker dials a neighbour; whether it is that one, the caller must check."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, folder, broker)
    _trust(context, folder.ca)
    context.check_hostname = False  # the name that counts is the broker's, wherever it listens
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class Own(NamedTuple):
    """A broker's own certificate."""

    not_after: float
    serial: str


class Contexts:
    """All contexts of a broker, made again when its files change.

    Raises InvalidConfiguration where they cannot be made at first. Ask for a context for each new
    connection: it may be another one each time. Those that stand keep what they began with.
    """

    def __init__(self, folder: SecurityFolder, broker: BrokerId) -> None:
        self._folder = folder
        self._broker = broker
        self.broken = ""
        """Why files that have changed are not used; empty where they are."""
        folder.check([broker])
        self._seen = self._files()
        self._load()

    def refresh(self) -> bool:
        """Take files that have changed, and tell whether there were new ones.

        Where they are broken, or do not fit together, the contexts stay as they were: this is
        logged once for each change, and stays in `broken` until they are mended.
        """
        now = self._files()
        if now == self._seen:
            return False
        self._seen = now
        try:
            self._load()
        except InvalidConfiguration as failure:
            self.broken = str(failure)
            _log.error(
                "%s goes on with the certificates it has: %s", self._broker.short, self.broken
            )
            return False
        self.broken = ""
        _log.info("%s has taken its certificates again", self._broker.short)
        return True

    def _load(self) -> None:
        """Make everything first, and take it only when all of it works."""
        folder, broker = self._folder, self._broker
        check_written_by_few(folder.own(broker))
        clients = listener_context(folder, broker)
        links = link_listener_context(folder, broker)
        dial = link_dial_context(folder, broker)
        certificate = _tried(dial, links, folder.certificate(broker), folder.ca)
        if broker_named(certificate) != broker.short:
            found = " ".join(names_of(certificate)) or "no URI"
            raise InvalidConfiguration(
                f"{folder.certificate(broker)} is not the certificate of {broker.short}: its "
                f"subject alternative names have {found}"
            )
        self.clients, self.links, self.dial = clients, links, dial
        self.own = Own(not_after(certificate), serial(certificate))

    def _files(self) -> tuple[tuple[int, ...], ...]:
        place, brokers, *files = self._folder.own(self._broker)
        modes = mode_of(place), mode_of(brokers)
        return (modes, *map(state_of, files))


def _context(protocol: int, folder: SecurityFolder, broker: BrokerId) -> ssl.SSLContext:
    # Made by hand: the ready-made ones trust the system's authorities, and may log session keys.
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # as newer Pythons do by themselves
    context.set_alpn_protocols([ALPN])
    _prove(context, folder.certificate(broker), folder.key(broker))
    return context


def _prove(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    def no_password() -> str:
        raise InvalidConfiguration(f"{key} is locked by a password: brokers need it without one")

    try:
        context.load_cert_chain(certificate, key, no_password)
    except ssl.SSLError as failure:
        if failure.reason == "KEY_VALUES_MISMATCH":
            reason = f"{key} is not the key of {certificate}"
        else:
            reason = f"{certificate} and {key} are no certificate and key in PEM: {_said(failure)}"
        raise InvalidConfiguration(reason) from failure
    except OSError as failure:
        raise InvalidConfiguration(
            f"cannot read {certificate} and {key}: {failure.strerror}"
        ) from failure


def _trust(context: ssl.SSLContext, authority: Path) -> None:
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as failure:
        raise InvalidConfiguration(
            f"{authority} has no certificate in PEM: {_said(failure)}"
        ) from failure
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {authority}: {failure.strerror}") from failure


def _tried(
    dial: ssl.SSLContext, links: ssl.SSLContext, certificate: Path, authority: Path
) -> PeerCertificate:
    """Let a broker shake hands with itself in memory, and return its certificate.

    So what its neighbours would not take is found here: another authority, an end that has come,
    a certificate that is only for one direction.
    """
    to_dialler, to_listener = ssl.MemoryBIO(), ssl.MemoryBIO()
    dialler = dial.wrap_bio(to_dialler, to_listener)
    listener = links.wrap_bio(to_listener, to_dialler, server_side=True)
    try:
        for side in (dialler, listener, dialler, listener):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLError as failure:
        raise InvalidConfiguration(
            f"{certificate} does not hold before {authority}: {_said(failure)}"
        ) from failure
    found = dialler.getpeercert()
    assert found is not None, "a chain that was checked is there"
    return found


def _said(failure: ssl.SSLError) -> str:
    """Return what OpenSSL says, without the place in its source."""
    said = getattr(failure, "verify_message", None) or failure.reason
    return str(said).lower().replace("_", " ") if said else "it cannot be read"
