"""What commands read in access.toml, and a user more in it, whose comments stay as they are.

What all of it means for a broker is not here: this only looks at names.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from octopis.core.model.suggestion import did_you_mean
from octopis.core.toml import encode_key, encode_table, read
from octopis.errors import InvalidConfiguration
from octopis.security.names import check_user_name, read_serial


class AccessText:
    """The text of access.toml; `where` names it in errors. Raises InvalidConfiguration."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        tables = read(text, where)
        self.users = self._table(tables, "users")
        self.roles = self._table(tables, "roles")
        self._revoked = self._table(tables, "revoked")

    @property
    def revoked_certificates(self) -> frozenset[int]:
        """The serial numbers of certificates that are revoked, however they are written."""
        numbers = self._revoked.get("certificates", [])
        place = f"{self._where}: revoked.certificates"
        if not isinstance(numbers, list) or not all(isinstance(each, str) for each in numbers):
            raise InvalidConfiguration(f"{place} is a list of texts, each a serial number")
        try:
            return frozenset(map(read_serial, numbers))
        except InvalidConfiguration as failure:
            raise InvalidConfiguration(f"{place}: {failure}") from failure

    def is_revoked(self, name: str) -> bool:
        """Tell whether a user is revoked, whatever they log in with."""
        names = self._revoked.get("users", [])
        if not isinstance(names, list):
            raise InvalidConfiguration(f"{self._where}: revoked.users is a list of names")
        return name in names

    def with_user(self, name: str, roles: Sequence[str]) -> str:
        """Return the text with a table for a new user at its end."""
        check_user_name(name)
        if name in self.users:
            raise InvalidConfiguration(
                f"{self._where} has the user {name} already: change the roles there"
            )
        for role in roles:
            if role not in self.roles:
                hint = did_you_mean(role, self.roles) or f"; there are {self._known()}"
                raise InvalidConfiguration(f"{self._where} has no role {role!r}{hint}")
        if not roles:
            raise InvalidConfiguration(
                f"{name} is new: give a --role; there are {self._known()} in {self._where}"
            )
        key = encode_key(name)
        end = "\r\n" if "\r\n" in self._text else "\n"
        table = encode_table(f"users.{key}", {"roles": list(roles)}).replace("\n", end)
        longer = f"{self._text}{'' if self._text.endswith(end) else end}{end}{table}"
        try:
            after = AccessText(longer, self._where)
        except InvalidConfiguration as failure:  # users = { ... } cannot be gone on with
            raise InvalidConfiguration(
                f"{self._where} cannot take a table [users.{key}] at its end: write the user there "
                "by hand"
            ) from failure
        assert after.users == {**self.users, name: {"roles": list(roles)}}
        return longer

    def _known(self) -> str:
        return ", ".join(self.roles) or "none"

    def _table(self, tables: dict[str, Any], name: str) -> dict[str, Any]:
        found = tables.get(name, {})
        if not isinstance(found, dict):
            raise InvalidConfiguration(f"{self._where}: {name} must be a table")
        return found


def read_access_text(path: Path) -> AccessText:
    """Return access.toml as its text is, line ends and all, or raise InvalidConfiguration."""
    try:
        return AccessText(path.read_bytes().decode(), str(path))
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise InvalidConfiguration(f"{path} is not a text file in UTF-8") from failure
