"""access.toml: what roles come to, who is let in by it, and what is wrong in it and where."""

from pathlib import Path

import pytest

from octopis.core.model import Value
from octopis.errors import InvalidConfiguration, LoginFailed, NotPermitted
from octopis.security.access import parse_access, read_access
from octopis.security.identity import NOTHING, Identity, Permissions
from octopis.security.login import Logins
from support.logins import NOW, Door, access_text, door

__all__ = ["door"]

TWO = """
[roles.trader]
publish = "topic = 'orders'"
subscribe = "price < 1000"
force = { tenant = "a" }
durable = true
[roles.guest]
subscribe = "public"
deny_subscribe = "secret"
deny_publish = "kind = 'admin'"
force = { level = 3 }
[roles.other]
force = { tenant = "b" }
status = true
"""


def two(*roles: str) -> Permissions:
    return parse_access(TWO, "access.toml").permissions(roles)


def test_what_is_not_said_is_not_allowed():
    nothing = two()
    assert (nothing.publish, nothing.subscribe) == (NOTHING, NOTHING)
    assert not nothing.is_durable
    assert not nothing.sees_status
    with pytest.raises(NotPermitted):
        nothing.guarded(two("trader").subscribe)
    assert two("guest").publish == NOTHING  # a denial alone allows nothing


def test_denial_of_one_role_wins_over_what_another_allows():
    both = two("trader", "guest")
    assert str(both.subscribe) == "secret = FALSE AND (price < 1000 OR public = TRUE)"
    assert both.may_see({"price": 5, "secret": False})
    assert both.may_see({"public": True, "secret": False})
    for refused in ({"price": 5, "secret": True}, {"price": 5}, {"price": 5, "secret": "no"}):
        attributes: dict[str, Value] = refused  # type: ignore[assignment]
        assert not both.may_see(attributes)
    assert not both.may_publish({"topic": "orders", "kind": "admin"})
    assert not both.may_publish({"topic": "orders"})  # UNKNOWN whether it is denied
    assert both.may_publish({"topic": "orders", "kind": "order"})
    assert (both.forced, both.is_durable, both.sees_status) == (
        {"level": 3, "tenant": "a"},
        True,
        False,
    )


def test_order_and_repetition_of_roles_do_not_matter():
    assert two("trader", "guest") == two("guest", "trader", "guest")


def test_roles_that_force_different_values_do_not_go_together():
    with pytest.raises(LoginFailed, match="'other' and 'trader' force 'tenant' to different"):
        two("trader", "other")
    text = TWO + '[users.alice]\nroles = ["trader", "other"]'
    with pytest.raises(InvalidConfiguration, match=r"^access.toml: users.alice.roles: the roles"):
        parse_access(text, "access.toml")


@pytest.mark.parametrize(("first", "second"), [("1", "1.0"), ("1", "true"), ("0.0", "false")])
def test_values_of_other_kinds_are_other_values(first: str, second: str):
    text = f"[roles.a]\nforce = {{ x = {first} }}\n[roles.b]\nforce = {{ x = {second} }}"
    with pytest.raises(LoginFailed, match="different values"):
        parse_access(text, "").permissions(["a", "b"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[roles.t]\npublsh = ''", r"A: roles.t: unknown key 'publsh'; did you mean 'publish'?"),
        ("[rolls.t]", "A: unknown key 'rolls'; did you mean 'roles'?"),
        ("[roles.t]\npublish = 7", "A: roles.t: publish: expected 'str | null', got 'int'"),
        ("[roles.t]\nstatus = 1", "A: roles.t: status: expected 'bool', got 'int'"),
        ("[roles]\nt = 5", "A: roles"),
        ('[roles.t]\nsubscribe = "price <"', "A: roles.t.subscribe: "),
        ("[roles.t]\ndeny_publish = ''", "A: roles.t.deny_publish: "),
        ("[roles.t]\nforce = { a = nan }", "A: roles.t.force: attribute 'a' is nan"),
        ("[roles.t]\nforce = { a = [1] }", "A: roles.t: force[...]: expected"),
        ("[roles.t]\nforce = { a = 2024-01-01 }", "A: roles.t: force[...]: expected"),
        ("[roles.t]\nforce = { a = 9223372036854775808 }", "A: roles.t.force: attribute 'a'"),
        ("[roles.t]\nforce = { '' = 1 }", "A: roles.t.force: attribute names have 1 to 255"),
        ('[roles."a/b"]', "A: a role cannot be called 'a/b': a name has 1 to 64"),
        ('[roles.""]', "A: a role cannot be called ''"),
        ('[users."x\\ny"]\nroles = []', "A: a user cannot be called 'x\\ny'"),
        ('[users."\u202ex"]\nroles = []', "A: a user cannot be called '\\u202ex'"),
        ('[users." x"]\nroles = []', "A: a user cannot be called ' x'"),
        ('[users."\uff41"]\nroles = []', "A: a user cannot be called '\\uff41'"),
        (f"[users.{'x' * 65}]\nroles = []", "A: a user cannot be called"),
        ("[users.al]", "A: users.al: object missing required field 'roles'"),
        ("[users.al]\nrole = ['t']", "A: users.al: unknown key 'role'; did you mean 'roles'?"),
        ("[roles.trader]\n[users.al]\nroles = ['tradr']", "there is no role 'tradr'; did you mean"),
        ("[users.al]\nroles = 'trader'", "A: users.al: roles: expected 'array', got 'str'"),
        ("[users.al]\nroles = []\npassword = 'x'", "A: users.al.password: it must have the form"),
        ("[revoked]\ncertificates = ['xyz']", "A: revoked.certificates: 'xyz' is no serial"),
        ("[revoked]\ncertificate = ['1']", "did you mean 'certificates'?"),
        ("[revoked]\nusers = ['a/b']", "A: revoked.users: a user cannot be called"),
        ("[revoked]\ndurables = ['risk']", "A: revoked.durables: 'risk' is no durable"),
        ("[roles.t\n", "A is not valid TOML: "),
    ],
)
def test_what_is_wrong_is_said_with_file_and_place(text: str, reason: str):
    with pytest.raises(InvalidConfiguration) as failure:
        parse_access(text, "A")
    assert reason in str(failure.value)


def test_roles_too_many_or_too_long_together_are_said():
    many = "\n".join(f"[roles.r{n}]" for n in range(17))
    names = [f"r{n}" for n in range(17)]
    with pytest.raises(LoginFailed, match="more than 16 roles"):
        parse_access(many, "").permissions(names)
    long = "\n".join(f"[roles.r{n}]\nsubscribe = \"a{n} = '{'x' * 3000}'\"" for n in range(2))
    access = parse_access(long, "")
    assert access.permissions(["r0"]).subscribe != NOTHING
    with pytest.raises(LoginFailed, match="the filters of r0 and r1 make no filter"):
        access.permissions(["r0", "r1"])


def test_combinations_of_roles_are_kept_and_bounded():
    text = "\n".join(f'[roles.r{n}]\nsubscribe = "a = {n}"' for n in range(50))
    access = parse_access(text, "")
    assert access.permissions(["r1", "r2"]) is access.permissions(["r2", "r1"])
    for first in range(50):
        for second in range(50):
            access.permissions([f"r{first}", f"r{second}"])
    assert len(access._joined) == 1000


def test_file_that_cannot_be_read_is_said(tmp_path: Path):
    path = tmp_path / "access.toml"
    with pytest.raises(InvalidConfiguration, match=r"cannot read .*access.toml"):
        read_access(path)
    path.write_bytes(b"\xff")
    with pytest.raises(InvalidConfiguration, match="is not a text file in UTF-8"):
        read_access(path)
    path.write_text(access_text())
    assert set(read_access(path).users) == {"alice", "bob"}


# Certificates, as ssl tells of them


def certificate(*uris: str, serial: str = "0A1B", ends: str = "Jan 16 00:00:00 2027 GMT") -> dict:
    names = tuple(("URI", uri) for uri in uris)
    return {"subjectAltName": names, "serialNumber": serial, "notAfter": ends}


BOB = "urn:octopis:client:bob"


def by_certificate(door: Door, peer: dict | None) -> Identity:
    found = door.logins.begin(None, peer, NOW)
    assert isinstance(found, Identity)
    return found


def test_certificate_gives_the_roles_of_its_user(door: Door):
    found = by_certificate(door, certificate(BOB, "spiffe://other"))
    assert (found.name, found.roles, found.how) == ("bob", ("auditor",), "certificate")
    assert (found.credential, found.expires_at) == ("0A1B", 1_800_057_600.0)


@pytest.mark.parametrize(
    ("peer", "reason"),
    [
        (None, "a login is needed here"),
        ({}, "a login is needed here"),
        (certificate("urn:octopis:broker:b,2"), "is no user's"),
        (certificate(BOB, "urn:octopis:client:alice"), "is no user's"),
        (certificate(BOB, "urn:octopis:broker:b,2"), "is no user's"),
        (certificate(), "is no user's: its URIs are 'none'"),
        (certificate("urn:octopis:client:nobody"), "that of nobody, who may not come in here"),
        (certificate(BOB, ends="Jan 15 07:59:59 2027 GMT"), "the certificate has expired"),
    ],
)
def test_certificate_that_lets_nobody_in(door: Door, peer: dict | None, reason: str):
    with pytest.raises(LoginFailed, match=reason):
        by_certificate(door, peer)


@pytest.mark.parametrize("written", ["0A1B", "a1b", "0a:1b", "00000A1B"])
def test_revoked_certificate_is_refused_however_its_number_is_written(door: Door, written: str):
    identity = by_certificate(door, certificate(BOB))
    door.change(access_text() + f"[revoked]\ncertificates = ['{written}']")
    with pytest.raises(LoginFailed, match="the certificate is revoked"):
        by_certificate(door, certificate(BOB))
    assert door.access.current(identity) is None
    assert by_certificate(door, certificate(BOB, serial="0A1C")).name == "bob"


def test_identity_is_none_when_its_user_or_a_role_is_gone(door: Door):
    identity = by_certificate(door, certificate(BOB))
    assert door.access.current(identity) == identity
    for text in ("", access_text() + "[revoked]\nusers = ['bob']"):
        door.change(text)
        assert door.access.current(identity) is None
    door.change("[roles.new]\nsubscribe = 'TRUE'\n[users.bob]\nroles = ['new']")
    now = door.access.current(identity)
    assert now is not None
    assert (now.roles, now.permissions.sees_status) == (("new",), False)


def test_broken_key_stops_the_start(door: Door):
    (door.folder.tokens / "bad.pem").write_text("x")
    with pytest.raises(InvalidConfiguration, match=r"bad.pem is not a public key"):
        Logins(lambda: door.access, door.folder)
