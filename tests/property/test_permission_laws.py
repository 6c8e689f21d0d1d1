"""Whatever is asked for, nobody sees or says what their roles do not allow.

The roles' filters and what is asked are drawn, and read a second time by the book: a notification
may pass where some role's allow is TRUE and every denial FALSE, and where what is asked is TRUE.
"""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex, LinearIndex
from octopis.errors import InvalidFilter, NotPermitted
from octopis.security.access import Access, RevokedTable, Role, parse_access
from octopis.security.identity import NOTHING, Permissions
from support.conditions import CONDITION, NOTIFICATIONS, Drawn, made, sql, truth_of

MAYBE = st.none() | CONDITION
ROLE = st.fixed_dictionaries(
    {"publish": MAYBE, "subscribe": MAYBE, "deny_publish": MAYBE, "deny_subscribe": MAYBE}
)
ROLES = st.lists(ROLE, min_size=1, max_size=3)
BATCH = st.lists(NOTIFICATIONS, min_size=4, max_size=8)


def permissions_of(roles: list[dict[str, Drawn]]) -> Permissions:
    """What a broker makes of roles."""
    kept = {}
    for number, role in enumerate(roles):
        filters = {verb: None if drawn is None else made(drawn) for verb, drawn in role.items()}
        kept[f"r{number}"] = Role(**filters, forced={}, is_durable=False, sees_status=False)
    return Access(kept, {}, RevokedTable()).permissions(kept)


def may(roles: list[dict[str, Drawn]], verb: str, attributes: dict[str, Any]) -> bool:
    """The same by the book."""
    allows = [role[verb] for role in roles if role[verb] is not None]
    denials = [role[f"deny_{verb}"] for role in roles if role[f"deny_{verb}"] is not None]
    is_allowed = any(truth_of(each, attributes) is True for each in allows)
    return is_allowed and all(truth_of(each, attributes) is False for each in denials)


@settings(max_examples=300, deadline=None)
@given(ROLES, CONDITION, BATCH)
def test_subscription_matches_only_what_some_role_allows_and_no_role_denies(
    roles: list[dict[str, Drawn]], asked: Drawn, batch: list[dict[str, Any]]
):
    permissions = permissions_of(roles)
    if permissions.subscribe == NOTHING:
        assert not any(may(roles, "subscribe", attributes) for attributes in batch)
        return
    effective = permissions.guarded(made(asked))
    for attributes in batch:
        is_allowed = may(roles, "subscribe", attributes)
        assert permissions.may_see(attributes) is is_allowed
        is_wanted = truth_of(asked, attributes) is True
        assert effective.matches(attributes) is (is_allowed and is_wanted)


@settings(max_examples=200, deadline=None)
@given(ROLES, BATCH)
def test_publication_passes_only_where_some_role_allows_and_no_role_denies(
    roles: list[dict[str, Drawn]], batch: list[dict[str, Any]]
):
    permissions = permissions_of(roles)
    for attributes in batch:
        assert permissions.may_publish(attributes) is may(roles, "publish", attributes)


@settings(max_examples=300, deadline=None)
@given(ROLES, CONDITION, CONDITION, NOTIFICATIONS)
def test_no_way_of_asking_widens_what_may_be_seen(
    roles: list[dict[str, Drawn]], asked: Drawn, other: Drawn, attributes: dict[str, Any]
):
    permissions = permissions_of(roles)
    assume(permissions.subscribe != NOTHING)
    guard, f, g = permissions.subscribe, made(asked), made(other)
    for trick in (f, ~f, f | ~f, f | g, ~(f & guard), ~guard, guard | f, parse_filter("TRUE")):
        try:
            effective = permissions.guarded(trick)
        except InvalidFilter:  # too long together: refused
            continue
        if effective.matches(attributes):
            assert may(roles, "subscribe", attributes)
        written = parse_filter(str(effective))  # as it crosses the wire to other brokers
        assert written.matches(attributes) is effective.matches(attributes)


@settings(max_examples=80, deadline=None)
@given(ROLES, st.lists(CONDITION, min_size=1, max_size=6), BATCH)
def test_index_agrees_with_the_oracle_on_guarded_subscriptions(
    roles: list[dict[str, Drawn]], asked: list[Drawn], batch: list[dict[str, Any]]
):
    permissions = permissions_of(roles)
    fast: BitsetIndex[int, str] = BitsetIndex()
    oracle: LinearIndex[int, str] = LinearIndex()
    for number, drawn in enumerate(asked):
        try:
            effective = permissions.guarded(made(drawn))
        except NotPermitted:
            return
        fast.add(number, effective, "here")
        oracle.add(number, effective, "here")
    found = [sorted(each) for each in fast.matches(batch)]
    assert found == [sorted(each) for each in oracle.matches(batch)]
    for attributes, matches in zip(batch, found, strict=True):
        assert not matches or may(roles, "subscribe", attributes)


@settings(max_examples=80, deadline=None)
@given(ROLES, ROLE, BATCH)
def test_role_more_takes_away_nothing_but_what_it_denies(
    roles: list[dict[str, Drawn]], more: dict[str, Drawn], batch: list[dict[str, Any]]
):
    before = permissions_of(roles)
    after = permissions_of([*roles, more])
    denied = more["deny_subscribe"]
    for attributes in batch:
        if before.may_see(attributes) and not after.may_see(attributes):
            assert denied is not None
            assert truth_of(denied, attributes) is not False


@settings(max_examples=80, deadline=None)
@given(ROLES, BATCH)
def test_roles_in_a_file_are_those_made_in_python(
    roles: list[dict[str, Drawn]], batch: list[dict[str, Any]]
):
    lines = []
    for number, role in enumerate(roles):
        lines.append(f"[roles.r{number}]")
        for verb, drawn in role.items():
            if drawn is not None:
                text = "".join(f"\\U{ord(character):08x}" for character in sql(drawn))
                lines.append(f'{verb} = "{text}"')
    access = parse_access("\n".join(lines), "access.toml")
    permissions = access.permissions(f"r{number}" for number in range(len(roles)))
    for attributes in batch:
        assert permissions.may_see(attributes) is may(roles, "subscribe", attributes)
        assert permissions.may_publish(attributes) is may(roles, "publish", attributes)
