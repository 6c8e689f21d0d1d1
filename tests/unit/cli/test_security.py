"""`octopis security`: folders are made, renewed and shown."""

import json
import ssl
import stat
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from octopis.core.model import BrokerId
from octopis.core.topology import from_catalogue
from octopis.security.certificates import hosts_in, read_certificate, serial_of
from octopis.security.contexts import Contexts
from octopis.security.folder import SecurityFolder
from support.certificates import an_authority

Run = Callable[..., tuple[int, str, str]]

B2 = BrokerId("b", 2)
OVERLAY = """
insecure = true
[topology]
catalogue = "figure-7"
[brokers."b,2"]
host = "10.0.0.7"
port = 7400
[brokers."a,0"]
host = "0.0.0.0"
port = 7400
"""


@pytest.fixture
def security(octopis: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `octopis security`, in a folder that is empty at first."""
    monkeypatch.chdir(tmp_path)
    return partial(octopis, "security")


@pytest.fixture
def folder(security: Run) -> SecurityFolder:
    """Make the security folder `s`, of figure-7."""
    status, _, error = security("init", "s", "--topology", "figure-7")
    assert (status, error) == (0, "")
    return SecurityFolder(Path("s"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def serials(folder: SecurityFolder) -> dict[str, str]:
    found = [*folder.brokers.glob("*.pem"), *folder.clients.glob("*.pem")]
    return {path.stem: serial_of(read_certificate(path)) for path in found}


# init


def test_init_makes_what_every_broker_needs(folder: SecurityFolder):
    brokers = from_catalogue("figure-7").scot.brokers
    folder.check(brokers)
    for broker in brokers:
        assert not Contexts(folder, broker).broken
    assert len(serials(folder)) == len(brokers) + 1
    assert len(set(serials(folder).values())) == len(brokers) + 1


def test_init_makes_credentials_of_an_operator_that_lead_to_its_files(folder: SecurityFolder):
    where = folder.credentials("operator")
    found = {key: where.parent / path for key, path in tomllib.loads(where.read_text()).items()}
    assert set(found) == {"ca", "certificate", "key"}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(found["ca"])
    context.load_cert_chain(found["certificate"], found["key"])
    access = tomllib.loads(folder.access.read_text())
    assert access["users"] == {"operator": {"roles": ["operator"]}}
    assert access["roles"]["operator"]["status"] is True


def test_init_lets_nobody_else_read_what_is_secret(folder: SecurityFolder):
    for path in (folder.path, folder.brokers, folder.clients, folder.tokens):
        assert mode(path) == 0o700
    keys = [*folder.path.rglob("*.key"), folder.access, folder.credentials("operator")]
    assert len(keys) == 3 + 9 + 1 + 2
    assert {mode(path) for path in keys} == {0o600}


def test_init_leaves_what_is_there(security: Run, folder: SecurityFolder):
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    status, _, error = security("init", "s", "--topology", "figure-3")
    assert (status, error) == (
        2,
        "octopis: s is not empty: choose another folder, or remove it\n",
    )
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before


def test_init_takes_hosts_from_the_overlay_and_from_the_line(security: Run):
    Path("o.toml").write_text(OVERLAY)
    Path("s").mkdir(mode=0o755)
    status, printed, error = security(
        "init", "s", "--config", "o.toml", "--host", "example.org", "--days", "7"
    )
    assert (status, error) == (0, "")
    assert f'folder = "{Path("s").absolute()}"' in printed
    made = SecurityFolder(Path("s"))
    here = {"localhost", "127.0.0.1", "::1", "example.org"}
    assert set(hosts_in(read_certificate(made.certificate(B2)))) == {*here, "10.0.0.7"}
    assert set(hosts_in(read_certificate(made.certificate(BrokerId("a", 0))))) == here
    assert mode(made.path) == 0o700


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "say for which overlay"),
        (["--topology", "figure-7", "--config", "o.toml"], "exclude each other"),
        (["--topology", "figure-77"], "did you mean 'figure-7'"),
        (["--topology", "figure-7", "--host", "*.org"], "'*.org' is no host"),
        (["--topology", "figure-7", "--days", "0"], "--days"),
    ],
)
def test_init_that_makes_no_sense_makes_nothing(security: Run, words: list[str], reason: str):
    status, _, error = security("init", "s", *words)
    assert status == 2
    assert reason in error
    assert not list(Path().iterdir())


# client


def test_client_is_given_credentials_and_a_role_and_comments_stay(
    security: Run, folder: SecurityFolder
):
    before = folder.access.read_text()
    status, printed, error = security("client", "s", "bob@x.org", "--role", "operator")
    assert (status, error) == (0, "")
    assert "bob@x.org.toml" in printed
    after = folder.access.read_text()
    assert after.startswith(before)
    assert tomllib.loads(after)["users"]["bob@x.org"] == {"roles": ["operator"]}
    assert mode(folder.access) == mode(folder.client_key("bob@x.org")) == 0o600
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(folder.client_certificate("bob@x.org"), folder.client_key("bob@x.org"))


def test_user_who_is_there_is_given_a_certificate_alone(security: Run, folder: SecurityFolder):
    text = folder.access.read_text() + '[users.carol]\nroles = ["operator"]\npassword = "x"\n'
    folder.access.write_text(text)
    status, printed, error = security("client", "s", "carol", "--days", "5")
    assert (status, error) == (0, "")
    assert "operator" in printed
    assert folder.access.read_text() == text
    assert folder.credentials("carol").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["operator"], "operator.pem is there already: `octopis security renew --client operator`"),
        (["operator", "--role", "operator"], "has the user operator already"),
        (["bob"], "give a --role; there are operator"),
        (["bob", "--role", "king"], "no role 'king'"),
        (["../bob", "--role", "operator"], "cannot be a user's name"),
        (["mallory", "--role", "operator"], "mallory is revoked"),
    ],
)
def test_client_that_cannot_be_made_changes_nothing(
    security: Run, folder: SecurityFolder, words: list[str], reason: str
):
    text = folder.access.read_text().replace("users = []", 'users = ["mallory"]')
    folder.access.write_text(text)
    before = sorted(folder.path.rglob("*"))
    status, _, error = security("client", "s", *words)
    assert status == 2
    assert reason in error
    assert sorted(folder.path.rglob("*")) == before
    assert folder.access.read_text() == text


def test_client_is_refused_where_another_authority_signs_clients(
    security: Run, folder: SecurityFolder
):
    an_authority().write(folder.path / "clients-ca.pem", Path("elsewhere.key"))
    status, _, error = security("client", "s", "bob", "--role", "operator")
    assert status == 2
    assert "issue one there, for the URI urn:octopis:client:bob" in error


# renew


def test_renew_issues_what_ends_soon_and_brokers_take_it(security: Run, folder: SecurityFolder):
    assert security("renew", "s", "--broker", "b,2", "--days", "20")[0] == 0
    contexts = Contexts(folder, B2)
    before = serials(folder)
    status, printed, error = security("renew", "s")
    assert (status, error) == (0, "")
    assert "b,2" in printed
    changed = {name for name, number in serials(folder).items() if number != before[name]}
    assert changed == {"b,2"}
    assert contexts.refresh()
    assert contexts.own.serial == serials(folder)["b,2"]
    assert security("renew", "s")[1] == "Nothing is renewed.\n"


def test_renew_issues_all_or_those_that_are_named(security: Run, folder: SecurityFolder):
    before = serials(folder)
    assert security("renew", "s", "--client", "operator", "--broker", "B(a, 0)")[0] == 0
    after = serials(folder)
    assert {name for name in after if after[name] != before[name]} == {"operator", "a,0"}
    assert security("renew", "s", "--all")[0] == 0
    assert not set(serials(folder).values()) & set(after.values())
    for broker in from_catalogue("figure-7").scot.brokers:
        assert not Contexts(folder, broker).broken


def revoke(folder: SecurityFolder, name: str) -> None:
    number = serials(folder)[name]
    text = folder.access.read_text()
    folder.access.write_text(text.replace("certificates = []", f'certificates = ["{number}"]'))


def test_what_is_revoked_is_never_renewed(security: Run, folder: SecurityFolder):
    revoke(folder, "operator")
    before = serials(folder)
    assert security("renew", "s", "--days-left", "1000")[0] == 0
    assert serials(folder)["operator"] == before["operator"]
    for words in (["--client", "operator"], ["--all"]):
        status, _, error = security("renew", "s", *words)
        assert (status, error) == (
            1,
            "octopis: not renewed: client operator: its certificate is revoked\n",
        )
        assert serials(folder)["operator"] == before["operator"]


def test_renew_says_what_it_cannot_issue_and_issues_the_rest(security: Run, folder: SecurityFolder):
    folder.certificate(B2).write_text("rubbish")
    before = serials_but(folder, B2)
    status, _, error = security("renew", "s", "--all")
    assert status == 1
    assert "not renewed: broker b,2: " in error
    after = serials_but(folder, B2)
    assert not set(before.values()) & set(after.values())


def serials_but(folder: SecurityFolder, broker: BrokerId) -> dict[str, str]:
    found = [path for path in folder.brokers.glob("*.pem") if path != folder.certificate(broker)]
    return {path.stem: serial_of(read_certificate(path)) for path in found}


def test_renew_without_the_authoritys_key_says_so(security: Run, folder: SecurityFolder):
    folder.ca_key.unlink()
    status, _, error = security("renew", "s")
    assert status == 2
    assert "there is no s/ca.key" in error


@pytest.mark.parametrize("words", [["--broker", "b,22"], ["--client", "b,2"]])
def test_renew_of_somebody_else_is_refused(security: Run, folder: SecurityFolder, words: list[str]):
    before = serials(folder)
    status, _, error = security("renew", "s", *words)
    assert status == 2
    assert "is here; there are" in error
    assert serials(folder) == before


# show


def test_show_lists_what_there_is(security: Run, folder: SecurityFolder):
    status, printed, error = security("show", "s", "--json")
    assert (status, error) == (0, "")
    found = json.loads(printed)
    kinds = [each["kind"] for each in found["certificates"]]
    assert (kinds.count("authority"), kinds.count("broker"), kinds.count("client")) == (1, 9, 1)
    by_name = {each["name"]: each for each in found["certificates"]}
    assert by_name["b,2"]["serial"] == serials(folder)["b,2"]
    assert 364 < by_name["b,2"]["days_left"] <= 365
    assert 89 < by_name["operator"]["days_left"] <= 90
    assert 3649 < by_name["ca.pem"]["days_left"] <= 3650
    assert not any(each["fault"] or each["warning"] for each in found["certificates"])
    assert found["token_keys"] == ["octopis"]
    assert found["users"] == [{"name": "operator", "roles": ["operator"], "password": False}]
    assert "PRIVATE" not in printed


def test_show_warns_of_what_ends_soon(security: Run, folder: SecurityFolder):
    security("renew", "s", "--broker", "b,2", "--days", "29")
    status, printed, _ = security("show", "s")
    assert status == 0
    assert "mind: s/brokers/b,2.pem ends in 29 days; `octopis security renew`" in printed
    assert serials(folder)["a,0"] in printed
    assert "Tokens may be signed with: octopis" in printed


def test_show_fails_where_something_is_worth_nothing(security: Run, folder: SecurityFolder):
    revoke(folder, "operator")
    status, printed, _ = security("show", "s")
    assert (status, "mind: s/clients/operator.pem is revoked" in printed) == (1, True)
    folder.key(B2).unlink()
    status, printed, _ = security("show", "s")
    assert (status, "mind: s/brokers/b,2.pem lacks its key" in printed) == (1, True)


@pytest.mark.parametrize("command", [["renew"], ["show"], ["client"]])
def test_folder_that_is_none_is_refused(security: Run, command: list[str]):
    Path("empty").mkdir()
    words = ["bob", "--role", "operator"] if command == ["client"] else []
    status, _, error = security(*command, "empty", *words)
    assert (status, error) == (
        2,
        "octopis: empty is no security folder: make one with `octopis security init`\n",
    )
