"""A user more in access.toml: what was there stays, to the letter."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.core.filters import parse_filter
from octopis.errors import InvalidConfiguration
from octopis.security.making import ACCESS
from octopis.security.names import is_user_name
from octopis.security.users import AccessText

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,8}", fullmatch=True).filter(
    lambda name: name != "operator"
)


@given(names, names)
def test_user_is_added_and_all_else_stays(one: str, other: str):
    assert is_user_name(one)
    longer = AccessText(ACCESS, "f").with_user(one, ["operator"])
    assert longer.startswith(ACCESS)
    assert tomllib.loads(longer)["users"][one] == {"roles": ["operator"]}
    if other != one:
        longest = AccessText(longer, "f").with_user(other, ["operator"])
        assert longest.startswith(longer)
        assert set(tomllib.loads(longest)["users"]) == {"operator", one, other}


@pytest.mark.parametrize("text", ["# a\r\n[roles.r]\r\n", "[roles.r] # no end", "[roles.r]\n"])
def test_ends_of_lines_stay_as_they_are(text: str):
    longer = AccessText(text, "f").with_user("a.b", ["r"])
    assert longer.startswith(text)
    assert longer.count("\n") - longer.count("\r\n") == (0 if "\r" in text else longer.count("\n"))
    assert tomllib.loads(longer)["users"] == {"a.b": {"roles": ["r"]}}


@pytest.mark.parametrize(
    ("text", "name", "roles", "reason"),
    [
        (ACCESS, "operator", ["operator"], "has the user operator already"),
        (ACCESS, "alice", ["operater"], "no role 'operater'; did you mean 'operator'"),
        (ACCESS, "alice", ["x" * 9], "there are operator"),
        (ACCESS, "alice", [], "give a --role; there are operator"),
        (ACCESS, "a/b", ["operator"], "cannot be a user's name"),
        ("users = {}\n[roles.r]\n", "alice", ["r"], "write the user there by hand"),
        ("roles = 3", "alice", ["r"], "roles must be a table"),
        ("[roles", "alice", ["r"], "is not valid TOML"),
    ],
)
def test_user_that_cannot_be_added_is_refused(text: str, name: str, roles: list[str], reason: str):
    with pytest.raises(InvalidConfiguration, match=reason):
        AccessText(text, "f").with_user(name, roles)


def test_revoked_certificates_are_numbers_however_they_are_written():
    text = '[revoked]\ncertificates = ["0A1b", "a:1B", "FF"]\nusers = ["mallory"]'
    access = AccessText(text, "f")
    assert access.revoked_certificates == {0xA1B, 0xFF}
    assert access.is_revoked("mallory")
    assert not access.is_revoked("alice")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ('["no number"]', ": 'no number' is no serial number"),
        ("[12]", " is a list of texts"),
        ("3", " is a list of texts"),
    ],
)
def test_revoked_certificates_that_are_none_are_refused(wrong: str, reason: str):
    with pytest.raises(InvalidConfiguration, match=rf"f: revoked\.certificates{reason}"):
        _ = AccessText(f"[revoked]\ncertificates = {wrong}", "f").revoked_certificates


def test_example_in_a_new_file_is_one_that_works():
    lines = [line.removeprefix("# ") for line in ACCESS.splitlines()[2:]]
    roles = tomllib.loads("\n".join(lines))["roles"]
    assert set(roles) == {"operator", "trader"}
    known = {"publish", "subscribe", "deny_publish", "deny_subscribe", "force", "durable", "status"}
    for role in roles.values():
        assert set(role) <= known
        for key in known.difference(("force", "durable", "status")).intersection(role):
            parse_filter(role[key])


def test_revoked_users_that_are_no_list_are_refused():
    text = AccessText('[revoked]\nusers = "alice"\n', "f")
    with pytest.raises(InvalidConfiguration, match=r"revoked\.users is a list of names"):
        text.is_revoked("ali")
    assert AccessText('[revoked]\nusers = ["alice"]\n', "f").is_revoked("alice")
