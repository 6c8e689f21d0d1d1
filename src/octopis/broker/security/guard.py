"""Who may be in, and until when: what a broker knows of roles, certificates and logins.

It looks again and again whether the files in the security folder are new. What is broken changes
nothing: the old stays in force, and log, audit and status say so.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from octopis.broker.connection import Connection
from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration, LoginFailed
from octopis.security.access import Access, changes, read_access
from octopis.security.audit import AuditLog
from octopis.security.bounds.failures import FailedLogins
from octopis.security.contexts import Contexts
from octopis.security.folder import SecurityFolder
from octopis.security.identity import Identity, Permissions
from octopis.security.login import Logins
from octopis.security.modes import (
    check_written_by_few,
    listed,
    mode_of,
    read_by_all,
    state_of,
)
from octopis.security.names import broker_named, days_left, not_after, serial
from octopis.security.tokens import LEEWAY_S

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

_LOOK_S = 0.25
"""So late may a session or a link end after its credential has."""

_WARN_EVERY_S = 86_400.0
_log = logging.getLogger(__name__)


class LinkEnd(Struct, frozen=True):
    """A neighbour behind a connection, by its certificate."""

    broker: BrokerId
    ends_at: float
    serial: str


class Guard:
    """Lets clients and neighbours in, and out again. `run` it; `close` it at the end.

    Raises InvalidConfiguration where the folder cannot be used.
    """

    def __init__(self, broker: "LiveBroker") -> None:
        self._broker = broker
        self._options = broker.overlay.security
        self._folder = SecurityFolder(Path(self._options.folder))
        self.contexts = Contexts(self._folder, broker.id)
        self._seen = self._settling = self._state()  # first: what is new after it, is read again
        self.access: Access = read_access(self._folder.access)
        self.logins = Logins(lambda: self.access, self._folder, self._options.audience)
        self.failures = FailedLogins()
        audit = self._folder.audit(broker.id)
        self._audit = AuditLog(audit) if self._options.audit else None
        self._warn_of_readers()
        self.write("started", certificate=self.contexts.own.serial, access=self.access.digest)
        self.broken = ""
        """Why what access.toml says now is not in force; empty where it is."""

        self._links: dict[Connection, LinkEnd] = {}
        self._looked_at = 0.0
        self._warned_at = 0.0

    def write(self, event: str, **facts: object) -> None:
        """Write an event into the audit log, if there is one."""
        if self._audit is not None:
            self._audit.write(event, **facts)

    def close(self) -> None:
        """Write down what is left to write."""
        if self._audit is not None:
            self._audit.close()
            self._audit = None

    def status(self) -> dict[str, object]:
        """Say how it is, in values as JSON has them."""
        own = self.contexts.own
        audit = self._audit
        return {
            "certificate_days": round(days_left(own.not_after, time.time()), 2),
            "certificate": own.serial,
            "failed_logins": self.failures.total,
            "half_open": sum(each.half_open for each in self._broker.listening.listeners),
            "sent_away": sum(each.refused for each in self._broker.listening.listeners),
            "broken": [
                each
                for each in (self.broken, self.contexts.broken, audit.failure if audit else "")
                if each
            ],
        }

    # Neighbours

    def neighbour(self, connection: Connection, broker: BrokerId) -> LinkEnd:
        """Return who is behind a connection, or raise LoginFailed unless it is `broker`."""
        certificate = connection.certificate
        name = broker_named(certificate)
        if certificate is None or name is None:
            raise LoginFailed(f"the certificate is no broker's, and {broker.short} was expected")
        if name != broker.short:
            raise LoginFailed(f"the certificate is that of {name}, not of {broker.short}")
        end = LinkEnd(broker, not_after(certificate), serial(certificate))
        if self._is_revoked(end):
            raise LoginFailed(f"the certificate of {broker.short} is revoked")
        return end

    def keep(self, connection: Connection, end: LinkEnd) -> None:
        """Look after a link: it ends when its certificate does."""
        self._links[connection] = end
        connection.closed.add_done_callback(lambda _: self._links.pop(connection, None))

    def is_up(self, connection: Connection) -> None:
        """Write down that a link is up: who has shown its certificate may be sent away yet."""
        end = self._links[connection]
        self.write("link", broker=end.broker.short, certificate=end.serial)

    def _is_revoked(self, end: LinkEnd) -> bool:
        return self.access.is_revoked(
            Identity(f"broker {end.broker.short}", Permissions(), credential=end.serial)
        )

    # Time

    async def run(self) -> None:
        """Look after credentials and files, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_LOOK_S, self._options.reload_s))
            now = time.time()
            self._end_expired(now)
            self._drop_durables()
            if loop.time() - self._looked_at >= self._options.reload_s:
                self._looked_at = loop.time()
                self._refresh()
            if self._audit is not None:
                self._audit.tick()
            self._warn(now)

    def _end_expired(self, now: float) -> None:
        for session in list(self._broker.clients.values()):
            identity = session.identity
            if identity is None or identity.expires_at is None:
                continue
            leeway_s = LEEWAY_S if identity.how == "token" else 0.0  # so long it lets in, too
            if now < identity.expires_at + leeway_s:
                continue
            reason = f"the {identity.how} of {identity.name} has expired: log in with a new one"
            session.dismiss(reason)
        for connection, end in list(self._links.items()):
            if now >= end.ends_at:
                self._end_link(connection, end, "has expired")

    def _drop_durables(self) -> None:
        """Drop what is revoked: its owner is out, so nobody else can, and it may fill the disk."""
        desk = self._broker.desk
        if desk is None:
            return
        for name in self.access.revoked.durables:
            if desk.end_named(name, f"the durable subscription {name!r} is revoked"):
                self.write("durable_dropped", durable=name)

    def _end_link(self, connection: Connection, end: LinkEnd, fault: str) -> None:
        """Cut a link; whoever dials does so anew, with the certificates that there are then."""
        del self._links[connection]
        reason = f"the certificate of {end.broker.short} {fault}"
        event = "link_ended" if connection.is_greeted else "link_refused"
        self.write(event, broker=end.broker.short, reason=reason)
        _log.warning("%s: the link to %s ends: %s", self._broker.id, end.broker, reason)
        connection.close(reason)

    def _warn(self, now: float) -> None:
        days = days_left(self.contexts.own.not_after, now)
        if days < self._options.warn_days and now - self._warned_at > _WARN_EVERY_S:
            self._warned_at = now
            _log.warning(
                "the certificate of %s ends in %.1f days: octopis security renew %s",
                self._broker.id,
                days,
                self._options.folder,
            )

    # Files that change

    def _refresh(self) -> None:
        if self.contexts.refresh():
            self.write("certificates_reloaded", certificate=self.contexts.own.serial)
            self._warned_at = 0.0
        state = self._state()
        if state == self._seen:
            return
        if state != self._settling:  # half of a file that is being written may say something else
            self._settling = state
            self._looked_at = 0.0  # look again soon
            return
        self._seen = state
        before = self.access
        # Each by itself: who is revoked is out, also where some key's file is broken.
        broken = [self._tried(self._read_access), self._tried(self._read_keys)]
        self.broken = "; ".join(filter(None, broken))
        if self.broken:
            _log.error("%s goes on with what it has: %s", self._broker.id, self.broken)
            self.write("access_broken", reason=self.broken)
        if not all(broken):
            _log.info("%s has taken roles or keys again", self._broker.id)
            self.write("access_reloaded", access=self.access.digest, **changes(before, self.access))
            self._take()
        self._warn_of_readers()

    def _read_access(self) -> None:
        check_written_by_few(self._folder.roles)
        self.access = read_access(self._folder.access)

    def _read_keys(self) -> None:
        check_written_by_few(self._folder.token_keys)
        self.logins.refresh()

    def _warn_of_readers(self) -> None:
        found = read_by_all(self._folder.secrets)
        if found:
            _log.warning(
                "everybody on the machine of %s may read %s: take that away with chmod 600",
                self._broker.id,
                listed(found),
            )

    @staticmethod
    def _tried(read: Callable[[], None]) -> str:
        """Return why something is not in force; empty where it is."""
        try:
            read()
        except InvalidConfiguration as failure:
            return str(failure)
        return ""

    def _take(self) -> None:
        """Let nobody go on who may not any more, or not as before."""
        gone = self._broker.roles_changed(self.logins.current)
        if gone:
            self.write("roles_changed", sessions_ended=gone)
        for connection, end in list(self._links.items()):
            if self._is_revoked(end):
                self._end_link(connection, end, "is revoked")

    def _state(self) -> Mapping[str, tuple[int, ...]]:
        """Return what tells that a file is another one now, or that others may do more with it."""
        place, tokens, *keys = self._folder.token_keys
        changed = {str(path): state_of(path) for path in (self._folder.access, *keys)}
        modes = [place, tokens, *self._folder.secrets]
        return {**changed, "modes": tuple(map(mode_of, modes))}
