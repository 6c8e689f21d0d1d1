"""What docs/security.md shows of files is sound, and does what the page says."""

import re
import tomllib
from pathlib import Path

import pytest

from octopis.broker.settings import Limits, SecurityOptions
from octopis.security.access import Access, parse_access
from octopis.security.identity import Permissions

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
TABLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def access() -> Access:
    (text,) = [each for each in TABLES if each.startswith("# access.toml")]
    return parse_access(text, "docs/security.md")


def permissions(access: Access, name: str) -> Permissions:
    user = access.user(name)
    assert user is not None
    return access.permissions(user.roles)


def test_trader_of_the_page_is_held_to_filters_and_has_its_tenant_forced(access: Access):
    alice = permissions(access, "alice")
    assert alice.may_publish({"topic": "orders"})
    assert not alice.may_publish({"topic": "news"})
    assert alice.may_see({"price": 5})
    assert not alice.may_see({"price": 5_000})
    assert not alice.may_see({"symbol": "IBM"})
    assert (alice.forced, alice.is_durable, alice.sees_status) == ({"tenant": "a"}, True, False)


def test_deny_wins_for_the_user_with_two_roles_also_where_it_is_unknown(access: Access):
    bob = permissions(access, "bob")
    assert bob.may_see({"kind": "plain", "price": 5_000})
    assert not bob.may_see({"kind": "secret", "price": 5})
    assert not bob.may_see({"price": 5})
    assert bob.is_durable
    assert bob.sees_status


def test_settings_of_the_page_are_those_that_there_are_with_their_defaults():
    (text,) = [each for each in TABLES if each.startswith("[security]")]
    shown = tomllib.loads(text)["security"]
    assert shown.pop("folder")
    defaults = SecurityOptions()
    assert shown == {name: getattr(defaults, name) for name in shown}


def test_limits_that_the_page_names_exist():
    named = set(re.findall(r"`(?:limits\.)?([a-z_]+_(?:s|per_[a-z]+|bytes|max|window))`", PAGE))
    known = {*Limits.__struct_fields__, *SecurityOptions.__struct_fields__}
    assert len(named) > 8
    assert named - known <= {"quota_bytes"}


def test_page_names_the_events_that_brokers_write():
    source = Path(__file__).parents[2] / "src" / "octopis" / "broker"
    text = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    written = set(re.findall(r"(?:guard|self)\.write\(\s*\"([a-z_]+)\"", text))
    section = PAGE.partition("## The audit log")[2].partition("## ")[0]
    assert written
    assert [each for each in written if f"`{each}`" not in section] == []
