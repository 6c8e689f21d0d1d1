"""Live brokers with security, in tests: a folder with certificates, users and tokens."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import OverlayConfiguration, SecurityOptions
from octopis.client.client import Client
from octopis.client.credentials import Credentials
from octopis.core.topology import SCOT
from octopis.security.certificates import Issued, make_authority, read_authority
from octopis.security.folder import SecurityFolder
from octopis.security.making import add_client, make_folder
from octopis.security.passwords import make_password
from octopis.security.tokens import issue_token, read_private_key
from support.live import LIMITS, client_of, overlay

PASSWORD = "correct horse"  # noqa: S105 - of a test
DAYS = 30


class Folder:
    """A security folder whose users are alice (certificate), bob (password), carol (token)."""

    def __init__(self, path: Path, scot: SCOT) -> None:
        now = datetime.now(UTC)
        self.path = path
        brokers = dict.fromkeys(scot.brokers, ())
        self.files: SecurityFolder = make_folder(path, "test", brokers, days=DAYS, now=now)
        add_client(self.files, self.authority, "alice", DAYS, now)
        self.say(
            '[roles.all]\npublish = "TRUE"\nsubscribe = "TRUE"\ndurable = true\nstatus = true\n'
            '[users.alice]\nroles = ["all"]\n[users.carol]\nroles = ["all"]\n'
            f'[users.bob]\nroles = ["all"]\npassword = "{make_password(PASSWORD)}"\n'
        )

    @property
    def authority(self) -> Issued:
        return read_authority(self.files.ca, self.files.ca_key)

    def say(self, access: str) -> None:
        """Write another access.toml."""
        self.files.access.write_text(access, encoding="utf-8")

    def token(self, user: str = "carol", lifetime_s: float = 600.0, **options: Any) -> str:
        """Return a signed token."""
        about = {"audience": "octopis", "now": time.time(), **options}
        key = read_private_key(self.files.token_key)
        return issue_token(key, user, lifetime_s=lifetime_s, **about)

    def by_certificate(self, user: str = "alice") -> Credentials:
        files = self.files
        return Credentials(
            ca=files.ca,
            certificate=files.client_certificate(user),
            key=files.client_key(user),
        )

    def by_password(self, password: str = PASSWORD, user: str = "bob") -> Credentials:
        return Credentials(ca=self.files.ca, user=user, password=password)

    def by_token(self, token: str | None = None) -> Credentials:
        return Credentials(ca=self.files.ca, token=self.token() if token is None else token)

    def overlay(self, scot: SCOT, **options: Any) -> OverlayConfiguration:
        """Return an overlay with this folder, and short times."""
        chosen = {"reload_s": 0.1, **options.pop("security", {})}
        security = SecurityOptions(str(self.path), **chosen)
        limits = replace(LIMITS, **options.pop("limits", {}))
        return overlay(scot, security=security, limits=limits, **options)

    def audit(self, broker: LiveBroker) -> str:
        """Return what a broker has written down."""
        return self.files.audit(broker.id).read_text(encoding="utf-8")


def other_authority() -> Issued:
    """Return an authority that nobody trusts."""
    return make_authority("other", DAYS, datetime.now(UTC))


def client_as(broker: LiveBroker, credentials: Credentials, **options: Any) -> Client:
    """Return a client with credentials."""
    return client_of(broker, credentials=credentials, **options)
