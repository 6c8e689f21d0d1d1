"""The folder that brokers take everything about security from.

    ca.pem                     whom brokers trust, and clients too unless there is clients-ca.pem
    ca.key                     signs certificates; no broker reads it, so it can be kept elsewhere
    brokers/b,2.pem  b,2.key   a certificate and a key for each broker
    clients/NAME.pem NAME.key  a user's certificate and key, and NAME.toml, which leads to them
    tokens/NAME.pem            Ed25519 public keys that tokens may be signed with
    token.key                  signs tokens; no broker reads it
    login.key                  what salts for unknown users are made from, the same for all brokers
    access.toml                roles, users, and what is revoked
    audit/b,2.jsonl            what each broker has let in and refused

`octopis security init` makes it; an operator's own certificates may be put in as well.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration
from octopis.security.modes import check_written_by_few, listed
from octopis.security.names import written

FOLDER_MODE = 0o700
_FOR_ALL = 0o007


class SecurityFolder:
    """Where everything is in the folder at `path`, whether it is there or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ca = path / "ca.pem"
        self.ca_key = path / "ca.key"
        self.access = path / "access.toml"
        self.brokers = path / "brokers"
        self.clients = path / "clients"
        self.tokens = path / "tokens"
        self.token_key = path / "token.key"
        self.login_key = path / "login.key"

    @property
    def roles(self) -> list[Path]:
        """What says who may do what: whoever can write one of these can say it."""
        return [self.path, self.access]

    @property
    def token_keys(self) -> list[Path]:
        """What says whose tokens count."""
        return [self.path, self.tokens, *sorted(self.tokens.glob("*.pem"))]

    def own(self, broker: BrokerId) -> list[Path]:
        """Return what a broker proves itself by, and whom it trusts."""
        own = self.certificate(broker), self.key(broker)
        return [self.path, self.brokers, self.ca, self.clients_ca, *own]

    @property
    def secrets(self) -> list[Path]:
        """What nobody else should read; some of it is better kept elsewhere."""
        return [self.access, self.ca_key, self.token_key, self.login_key]

    @property
    def clients_ca(self) -> Path:
        """Whom clients' certificates must come from."""
        own = self.path / "clients-ca.pem"
        return own if own.exists() else self.ca

    def certificate(self, broker: BrokerId) -> Path:
        """Return where a broker's certificate is."""
        return self.brokers / f"{written(broker)}.pem"

    def key(self, broker: BrokerId) -> Path:
        """Return where a broker's key is."""
        return self.brokers / f"{written(broker)}.key"

    def audit(self, broker: BrokerId) -> Path:
        """Return where a broker's audit log is."""
        return self.path / "audit" / f"{written(broker)}.jsonl"

    def client_certificate(self, name: str) -> Path:
        """Return where a user's certificate is."""
        return self.clients / f"{name}.pem"

    def client_key(self, name: str) -> Path:
        """Return where a user's key is."""
        return self.clients / f"{name}.key"

    def credentials(self, name: str) -> Path:
        """Return where the file is that clients of a user are given."""
        return self.clients / f"{name}.toml"

    def check(self, brokers: Collection[BrokerId]) -> None:
        """Raise InvalidConfiguration where something is missing that these brokers need.

        Also where everybody on the machine may read a broker's key, or write anything that brokers
        take something from.
        """
        if not self.path.is_dir():
            raise InvalidConfiguration(
                f"there is no security folder {self.path}: make one with `octopis security init`"
            )
        keys = [self.key(broker) for broker in brokers]
        needed = [self.ca, self.access]
        for key in keys:
            needed += [key.with_suffix(".pem"), key]
        try:
            self._check_there(needed)
            open_to_all = [key for key in keys if key.stat().st_mode & _FOR_ALL]
        except OSError as failure:
            place = failure.filename or self.path
            raise InvalidConfiguration(f"cannot read {place}: {failure.strerror}") from failure
        if open_to_all:
            raise InvalidConfiguration(
                f"everybody on this machine may use {self._listed(open_to_all)}: "
                "take that away with chmod 600"
            )
        written = [*self.roles, *self.token_keys, *self.secrets, self.path / "audit"]
        check_written_by_few([*written, *(path for key in brokers for path in self.own(key))])

    def _check_there(self, needed: Iterable[Path]) -> None:
        missing = [path for path in needed if not path.exists()]
        if missing:
            raise InvalidConfiguration(
                f"the security folder {self.path} lacks {self._listed(missing)}: put it there, or "
                "make a new folder with `octopis security init` for the same topology"
            )

    def _listed(self, paths: list[Path]) -> str:
        return listed([path.relative_to(self.path) for path in paths])
