"""Who may do what: access.toml, with roles, users, and what is revoked.

Several roles of one user are joined so that a denial of one role wins over what any other allows:

    (allow1 OR allow2 ...) AND NOT deny1 AND NOT deny2 ...

In three-valued logic NOT deny is TRUE only where deny is FALSE: where an attribute that a denial
asks for is absent, or of another kind, it is refused. What is not said is not allowed.
"""

import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from hashlib import sha256
from operator import and_, or_
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from octopis.core.filters import Filter, parse_filter
from octopis.core.model import Notification, Value
from octopis.core.model.suggestion import did_you_mean
from octopis.core.toml import convert, read
from octopis.errors import (
    InvalidConfiguration,
    InvalidFilter,
    InvalidInput,
    InvalidNotification,
    LoginFailed,
)
from octopis.security.identity import NOTHING, Identity, Permissions
from octopis.security.names import read_serial
from octopis.security.passwords import StoredPassword, read_password

NAME_MAX = 64
ROLES_MAX = 16
"""How many roles somebody may have at once."""

_KEPT_MAX = 1_000
"""How many combinations of roles are kept joined. Tokens can have any."""


# The file, as it is written


class RoleTable(Struct, frozen=True):
    """A role: filters of what it may publish and see, and of what it may not."""

    publish: str | None = None
    subscribe: str | None = None
    deny_publish: str | None = None
    deny_subscribe: str | None = None
    force: dict[str, str | int | float | bool] = {}
    durable: bool = False
    status: bool = False


class UserTable(Struct, frozen=True):
    """A user: its roles, and what is kept of its password."""

    roles: tuple[str, ...]
    password: str | None = None


class RevokedTable(Struct, frozen=True):
    """Whom nobody lets in any more, whatever else is right about them."""

    certificates: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    durables: tuple[str, ...] = ()
    """Durable subscriptions that are dropped, as lists have them: alice/risk."""


class AccessTable(Struct, frozen=True):
    """The whole file. Roles and users are looked at one by one, so that errors name them."""

    roles: dict[str, dict[str, Any]] = {}
    users: dict[str, dict[str, Any]] = {}
    revoked: RevokedTable = RevokedTable()


# What is made of it


class Role(Struct, frozen=True):
    """A role with its filters read. None: nothing is allowed, or nothing denied."""

    publish: Filter | None
    subscribe: Filter | None
    deny_publish: Filter | None
    deny_subscribe: Filter | None
    forced: Mapping[str, Value]
    is_durable: bool
    sees_status: bool


class User(Struct, frozen=True):
    """A user. Without a password it cannot log in by one."""

    name: str
    roles: tuple[str, ...]
    password: StoredPassword | None = None


class Access:
    """All roles, users and revocations at one time. It never changes: a changed file is another."""

    def __init__(
        self,
        roles: Mapping[str, Role],
        users: Mapping[str, User],
        revoked: RevokedTable,
        digest: str = "",
    ) -> None:
        self.roles = dict(roles)
        self.users = dict(users)
        self.revoked = revoked
        self.digest = digest
        """The SHA-256 of the file."""

        self._certificates = frozenset(map(read_serial, revoked.certificates))
        self._tokens = frozenset(revoked.tokens)
        self._gone = frozenset(revoked.users)
        self.passwords = [user.password for user in users.values() if user.password is not None]
        """Those of all users, in the order of the file."""

        self._joined: OrderedDict[tuple[str, ...], Permissions] = OrderedDict()

    def user(self, name: str) -> User | None:
        """Return a user, None where there is none, or where it is revoked."""
        return None if name in self._gone else self.users.get(name)

    def permissions(self, roles: Iterable[str]) -> Permissions:
        """Return what these roles allow together, or raise LoginFailed where they make no sense."""
        asked = tuple(sorted(set(roles)))
        if asked in self._joined:
            self._joined.move_to_end(asked)
            return self._joined[asked]
        try:
            found = joined({name: self._role(name) for name in asked})
        except InvalidConfiguration as failure:
            raise LoginFailed(str(failure)) from failure
        self._joined[asked] = found
        if len(self._joined) > _KEPT_MAX:
            self._joined.popitem(last=False)
        return found

    def is_revoked(self, identity: Identity) -> bool:
        """Tell whether the identity, or the credential that it came with, is revoked."""
        if identity.name in self._gone:
            return True
        if identity.how == "certificate":
            return read_serial(identity.credential) in self._certificates
        return identity.how == "token" and identity.credential in self._tokens

    def current(self, identity: Identity) -> Identity | None:
        """Return the same identity as it is now; None where it would not be let in any more.

        That is so where it is revoked, its user or a role of it is gone, or its password is
        another one. When its credential ends, `expires_at` says.
        """
        if self.is_revoked(identity):
            return None
        roles = identity.roles
        if not identity.has_own_roles:
            user = self.user(identity.name)
            if user is None:
                return None
            if identity.how == "password" and not _is_password_of(user, identity):
                return None
            roles = user.roles
        try:
            permissions = self.permissions(roles)
        except LoginFailed:
            return None
        return structs.replace(identity, roles=roles, permissions=permissions)

    def _role(self, name: str) -> Role:
        if name not in self.roles:
            raise InvalidConfiguration(f"there is no role {name!r}{did_you_mean(name, self.roles)}")
        return self.roles[name]


def joined(roles: Mapping[str, Role]) -> Permissions:
    """Return what roles allow together.

    Raises InvalidConfiguration where they are too many, together too long, or force different
    things.
    """
    if len(roles) > ROLES_MAX:
        raise InvalidConfiguration(f"nobody has more than {ROLES_MAX} roles at once")
    each = list(roles.values())
    try:
        publish = _guard([role.publish for role in each], [role.deny_publish for role in each])
        subscribe = _guard(
            [role.subscribe for role in each], [role.deny_subscribe for role in each]
        )
    except InvalidFilter as failure:
        names = " and ".join(roles)
        raise InvalidConfiguration(f"the filters of {names} make no filter: {failure}") from failure
    return Permissions(
        publish=publish,
        subscribe=subscribe,
        forced=_forced(roles),
        is_durable=any(role.is_durable for role in each),
        sees_status=any(role.sees_status for role in each),
    )


def _guard(allowed: Iterable[Filter | None], denied: Iterable[Filter | None]) -> Filter:
    allows = [each for each in allowed if each is not None]
    if not allows:
        return NOTHING
    denials = [~each for each in denied if each is not None]
    return reduce(and_, denials, reduce(or_, allows))


def _forced(roles: Mapping[str, Role]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    by: dict[str, str] = {}
    for name, role in roles.items():
        for attribute, value in role.forced.items():
            if attribute in found and _exact(found[attribute]) != _exact(value):
                raise InvalidConfiguration(
                    f"the roles {by[attribute]!r} and {name!r} force {attribute!r} to different "
                    "values: nobody can have both"
                )
            found[attribute] = value
            by.setdefault(attribute, name)
    try:
        Notification.checked(found)  # each role's are right, and together they may be too many
    except InvalidNotification as failure:
        raise InvalidConfiguration(f"what the roles force together: {failure}") from failure
    return found


def changes(before: Access, after: Access) -> dict[str, list[str]]:
    """Return what is new, gone or another, by kind, in words for whoever reads an audit log."""
    found = {
        "roles": _changes(before.roles, after.roles),
        "users": _changes(before.users, after.users),
    }
    for kind in RevokedTable.__struct_fields__:
        now, then = getattr(after.revoked, kind), getattr(before.revoked, kind)
        found[f"revoked_{kind}"] = _changes(dict.fromkeys(then), dict.fromkeys(now))
    return {kind: words for kind, words in found.items() if words}


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    kept = before.keys() & after.keys()
    found = [f"+{name}" for name in after if name not in before]
    found += [f"-{name}" for name in before if name not in after]
    return found + [f"~{name}" for name in after if name in kept and before[name] != after[name]]


# Reading


def read_access(path: Path) -> Access:
    """Return what access.toml says, or raise InvalidConfiguration: file, place, what to do."""
    try:
        text = path.read_bytes().decode()  # as it is: ends of lines count in the digest
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise InvalidConfiguration(f"{path} is not a text file in UTF-8") from failure
    return parse_access(text, str(path))


def parse_access(text: str, where: str) -> Access:
    """Return what the text of an access.toml says; `where` names it in errors."""
    table = convert(read(text, where), AccessTable, where)
    roles = {name: _read_role(each, name, where) for name, each in table.roles.items()}
    users = {name: _read_user(each, name, where) for name, each in table.users.items()}
    with _at(f"{where}: revoked.certificates"):
        access = Access(roles, users, table.revoked, sha256(text.encode()).hexdigest())
    for name in table.revoked.users:
        with _at(f"{where}: revoked.users"):
            check_name(name, "a user")
    for name in table.revoked.durables:
        if not all(name.partition("/")):
            raise InvalidConfiguration(
                f"{where}: revoked.durables: {name!r} is no durable subscription of a user: write "
                "user/name, as `octopis overlay status` has them"
            )
    for user in users.values():
        with _at(f"{where}: users.{user.name}.roles"):
            access.permissions(user.roles)
    return access


def check_name(name: str, what: str) -> None:
    """Raise InvalidConfiguration where a user or a role cannot be called so.

    Names stand before a slash in names inside the overlay, in logs and on screens: they hold no
    slash, nothing that is not seen, and are the one form of what looks the same.
    """
    if not is_name(name):
        raise InvalidConfiguration(
            f"{what} cannot be called {name[:NAME_MAX]!a}: a name has 1 to {NAME_MAX} characters "
            "that can be printed, no space at an end, no '/', and no special forms of letters"
        )


def is_name(name: str) -> bool:
    """Tell whether a user or a role may be called so."""
    is_seen = name.isprintable() and name == name.strip()
    is_plain = "/" not in name and unicodedata.is_normalized("NFKC", name)
    return 1 <= len(name) <= NAME_MAX and is_seen and is_plain


def _read_role(table: Mapping[str, Any], name: str, where: str) -> Role:
    with _at(where):
        check_name(name, "a role")
    place = f"{where}: roles.{name}"
    said = convert(table, RoleTable, place)
    with _at(f"{place}.force"):
        Notification.checked(said.force)
    return Role(
        publish=_read_filter(said.publish, f"{place}.publish"),
        subscribe=_read_filter(said.subscribe, f"{place}.subscribe"),
        deny_publish=_read_filter(said.deny_publish, f"{place}.deny_publish"),
        deny_subscribe=_read_filter(said.deny_subscribe, f"{place}.deny_subscribe"),
        forced=said.force,
        is_durable=said.durable,
        sees_status=said.status,
    )


def _read_filter(text: str | None, place: str) -> Filter | None:
    if text is None:
        return None
    with _at(place):
        return parse_filter(text)


def _read_user(table: Mapping[str, Any], name: str, where: str) -> User:
    with _at(where):
        check_name(name, "a user")
    place = f"{where}: users.{name}"
    said = convert(table, UserTable, place)
    if said.password is None:
        return User(name, said.roles)
    with _at(f"{place}.password"):
        return User(name, said.roles, read_password(said.password))


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Say the place of what is wrong inside."""
    try:
        yield
    except (InvalidInput, LoginFailed) as failure:
        raise InvalidConfiguration(f"{place}: {failure}") from failure


# Small things


def _exact(value: Value) -> tuple[type, Value]:
    """Return what tells values apart: 1, 1.0 and TRUE are equal in Python, and differ here."""
    return type(value), value


def _is_password_of(user: User, identity: Identity) -> bool:
    return user.password is not None and user.password.mark == identity.credential
