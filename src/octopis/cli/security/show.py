"""`octopis security show`: what a security folder has, and until when."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from octopis.cli import output
from octopis.cli.security.options import FolderArgument, folder_at
from octopis.security.folder import SecurityFolder
from octopis.security.users import AccessText, read_access_text

if TYPE_CHECKING:
    from octopis.security.inventory import Held

WARN_DAYS = 30


def show(folder: FolderArgument, as_json: output.JsonFlag = False) -> None:
    """Show which certificates and users there are, and warn of what ends within 30 days.

    The exit status is 1 where anything has ended, is not in order, or is revoked.
    """
    from octopis.security.certificates import now_utc  # noqa: PLC0415
    from octopis.security.inventory import held_in  # noqa: PLC0415

    place = folder_at(folder)
    now = now_utc()
    access = read_access_text(place.access)
    held = held_in(place, access.revoked_certificates)
    if as_json:
        output.print_json(_document(place, held, access, now))
    else:
        _print(place, held, access, now)
    if any(_fault(each, now) for each in held):
        raise typer.Exit(1)


def _fault(held: "Held", now: datetime) -> str:
    """Return why a certificate is worth nothing, or an empty text."""
    rest = held.days_left(now)
    if held.problem:
        return held.problem
    if held.is_revoked:
        return f"{held.path} is revoked"
    return f"{held.path} has ended" if rest is not None and rest <= 0 else ""


def _warning(held: "Held", now: datetime) -> str:
    rest = held.days_left(now)
    if _fault(held, now) or rest is None or rest > WARN_DAYS:
        return ""
    return f"{held.path} ends in {rest:.0f} days"


def _document(
    place: SecurityFolder, held: list["Held"], access: AccessText, now: datetime
) -> dict[str, Any]:
    certificates = [
        {
            "kind": each.kind,
            "name": each.name,
            "file": str(each.path),
            "serial": each.serial,
            "ends": None if each.ends_at is None else each.ends_at.isoformat(),
            "days_left": each.days_left(now),
            "hosts": each.hosts,
            "revoked": each.is_revoked,
            "fault": _fault(each, now),
            "warning": _warning(each, now),
        }
        for each in held
    ]
    return {
        "folder": str(place.path),
        "can_issue": place.ca_key.exists(),
        "certificates": certificates,
        "token_keys": _token_keys(place),
        "users": [
            {"name": name, "roles": _roles(user), "password": "password" in user}
            for name, user in access.users.items()
        ],
    }


def _print(place: SecurityFolder, held: list["Held"], access: AccessText, now: datetime) -> None:
    rows = []
    for each in held:
        rest = each.days_left(now)
        ends = "" if each.ends_at is None else f"{each.ends_at:%Y-%m-%d}"
        left = "" if rest is None else f"{rest:,.0f}"
        rows.append((each.kind, each.name, ends, left, each.serial))
    columns = ("certificate", "name", "ends", "days", "serial number")
    output.print_table(f"Certificates in {place.path}", columns, rows)
    users = [
        (name, ", ".join(_roles(user)), "password" in user) for name, user in access.users.items()
    ]
    output.print_table("Users", ("name", "roles", "password"), users)
    output.say(f"Tokens may be signed with: {', '.join(_token_keys(place)) or 'no key'}")
    for each in held:
        said = _fault(each, now) or _warning(each, now)
        if said:
            hint = "; `octopis security renew` issues it again" if _warning(each, now) else ""
            output.say(f"mind: {said}{hint}")


def _token_keys(place: SecurityFolder) -> list[str]:
    return sorted(path.stem for path in place.tokens.glob("*.pem"))


def _roles(user: Any) -> list[str]:
    return [str(role) for role in user.get("roles", [])] if isinstance(user, dict) else []
