"""What a client that has logged in may do with durable subscriptions and batches.

A role changes, and what was kept on disk stays there: so all that is read is looked at again, by
what whoever reads may see now. What it may not see is left out, and told as missing.
"""

from typing import Any

from msgspec import structs

from octopis.broker.clients.permitted import Permit
from octopis.core.delivery.lasting.durables import Excerpt
from octopis.core.delivery.lasting.records import DurableState
from octopis.core.filters import Filter, parse_filter
from octopis.core.wire.durable import (
    AckDurable,
    CommitStaged,
    DropDurable,
    DropStaged,
    DurableInfo,
    DurableRequest,
    ListDurables,
    OpenDurable,
    ReadDurable,
    StageRows,
)
from octopis.core.wire.moving import (
    BeginDurable,
    CopyDurable,
    FinishDurable,
    ForgetDurable,
    JoinDurable,
    LeaveDurable,
    PassDurable,
    TakeDurable,
)
from octopis.errors import NotPermitted

_READING = (OpenDurable, ReadDurable, JoinDurable, CopyDurable)
_OWNED = (
    *(OpenDurable, ReadDurable, AckDurable, DropDurable),
    *(JoinDurable, LeaveDurable, CopyDurable, BeginDurable, TakeDurable),
    *(FinishDurable, ForgetDurable),
)
"""Requests about a durable subscription as its owner: with security, nobody shares any."""


def permitted(permit: Permit, request: DurableRequest) -> DurableRequest:
    """Return what is asked for with the names that things have here, or raise NotPermitted."""
    permissions = permit.permissions
    if isinstance(request, ListDurables):
        if not (permissions.is_durable or permissions.sees_status):
            raise NotPermitted("your role may not see durable subscriptions")
        return request
    if not permissions.is_durable:
        raise NotPermitted(
            "your role may not have durable subscriptions or stage batches: it needs durable = true"
        )
    if isinstance(request, _READING):
        permit.check_sees_anything()
    changes: dict[str, Any] = {}
    if isinstance(request, StageRows):
        changes["attempt"] = permit.attempt(request.attempt)
    elif isinstance(request, CommitStaged):
        changes["attempts"] = [(p, permit.attempt(n), count) for p, n, count in request.attempts]
    elif isinstance(request, DropStaged):
        changes["attempts"] = [(part, permit.attempt(n)) for part, n in request.attempts]
    else:
        changes["name"] = permit.durable(request.name)
    if isinstance(request, _OWNED):
        changes["shared"] = False
    assert isinstance(request, (*_OWNED, PassDurable, StageRows, CommitStaged, DropStaged))
    return structs.replace(request, **changes)


def visible(permit: Permit | None, found: Excerpt, after: int) -> Excerpt:
    """Return of what was read after a position what the client may see."""
    if permit is None or not found.bodies or all(may := permit.visible(found.bodies)):
        return found
    positions = [each for each, shown in zip(found.positions, may, strict=True) if shown]
    bodies = [each for each, shown in zip(found.bodies, may, strict=True) if shown]
    upto = positions[0] - 1 if positions else found.positions[-1]
    return Excerpt(positions, bodies, upto - after, found.end)


def guarded(permit: Permit | None, asked: Filter) -> tuple[Filter, dict[str, Any]]:
    """Return what a durable subscription comes to, and what its state says of that."""
    if permit is None:
        return asked, {"filter": str(asked)}
    filter_ = permit.guarded(asked)
    return filter_, {"filter": str(filter_), "asked": str(asked), "guard": permit.guard}


def asked_of(state: DurableState) -> Filter:
    """Return what was asked for, whatever a role allowed of it."""
    return parse_filter(state.asked or state.filter)


def told(permit: Permit | None, info: DurableInfo) -> DurableInfo:
    """Return how a durable subscription is, with the name that its owner knows it by."""
    if permit is None:
        return info
    return structs.replace(info, name=permit.told_durable(info.name))


def lists(permit: Permit | None, state: DurableState) -> bool:
    """Tell whether a client may know of a durable subscription."""
    return permit is None or permit.permissions.sees_status or state.owner == permit.owner
