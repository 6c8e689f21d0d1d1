"""`octopis security check`: whether access.toml is sound, and what each user may do by it."""

from typing import Any

from octopis.cli import output
from octopis.cli.security.options import FolderArgument, folder_at
from octopis.security.access import Access, User, read_access
from octopis.security.identity import NOTHING
from octopis.security.modes import check_written_by_few, read_by_all

_OTHERS_MAY = 0o077


def check(folder: FolderArgument, as_json: output.JsonFlag = False) -> None:
    """Check access.toml, and show what the roles of each user come to.

    Brokers read the file again when it changes. One with an error changes nothing there: check it
    here first.
    """
    place = folder_at(folder)
    check_written_by_few([*place.roles, *place.token_keys, *place.secrets])
    access = read_access(place.access)
    users = [_facts(access, user) for user in access.users.values()]
    warnings = _warnings(access)
    if place.access.stat().st_mode & _OTHERS_MAY:
        warnings.append(f"others than the owner may read or write {place.access}: chmod 600 it")
    warnings += [
        f"everybody on this machine may read {path}: chmod 600 it"
        for path in read_by_all(place.secrets)
        if path != place.access
    ]
    if not place.login_key.exists():
        warnings.append(
            f"{place.login_key} is not there: by the salts that two brokers send, strangers can "
            "tell which users there are; put 32 random bytes there, the same for all brokers"
        )
    if as_json:
        output.print_json({"file": str(place.access), "users": users, "warnings": warnings})
        return
    columns = ("user", "roles", "by", "publish", "subscribe", "forced", "durable", "status")
    output.print_table(f"{place.access} is sound", columns, map(_row, users))
    for warning in warnings:
        output.say(f"mind: {warning}")


def _facts(access: Access, user: User) -> dict[str, Any]:
    permissions = access.permissions(user.roles)
    publish, subscribe = permissions.publish, permissions.subscribe
    return {
        "user": user.name,
        "roles": list(user.roles),
        "revoked": access.user(user.name) is None,
        "password": user.password is not None,
        "publish": None if publish == NOTHING else str(publish),
        "subscribe": None if subscribe == NOTHING else str(subscribe),
        "force": dict(permissions.forced),
        "durable": permissions.is_durable,
        "status": permissions.sees_status,
    }


def _row(user: dict[str, Any]) -> tuple[object, ...]:
    by = "certificate, token" + (", password" if user["password"] else "")
    return (
        user["user"],
        ", ".join(user["roles"]) or "none",
        "revoked" if user["revoked"] else by,
        user["publish"] or "nothing",
        user["subscribe"] or "nothing",
        ", ".join(f"{name} = {value!r}" for name, value in user["force"].items()),
        user["durable"],
        user["status"],
    )


def _warnings(access: Access) -> list[str]:
    """Return what is right, and seldom meant."""
    used = {role for user in access.users.values() for role in user.roles}
    found = [
        f"nobody has the role {name!r}, but for tokens that say so"
        for name in access.roles
        if name not in used
    ]
    for name, role in access.roles.items():
        for verb, denied, allowed in (
            ("publish", role.deny_publish, role.publish),
            ("subscribe", role.deny_subscribe, role.subscribe),
        ):
            if denied is not None and allowed is not None and denied.names() - allowed.names():
                absent = ", ".join(sorted(denied.names() - allowed.names()))
                found.append(
                    f"roles.{name}.deny_{verb} asks for {absent}: what lacks it is denied, too; to "
                    f"let that through, deny only where it IS NOT NULL"
                )
    return found
