"""Logins by password: the right one gets in, and nothing tells what was wrong with any other."""

import base64
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient, ScramException

from octopis.core.wire.login import ITERATIONS_MIN, MECHANISM, MESSAGE_MAX, Scram
from octopis.errors import InvalidConfiguration, LoginFailed
from octopis.security.login import Challenge, Logins
from octopis.security.passwords import StoredPassword, make_password, read_password
from support.logins import NOW, PENCIL, ROLES, Door, access_text, door

__all__ = ["door"]

WRONG = "^user or password is wrong$"


def begun(door: Door, user: str = "alice", password: str = PENCIL) -> tuple[ScramClient, Challenge]:
    client = ScramClient([MECHANISM], user, password)
    challenge = door.ask(client.get_client_first())
    client.set_server_first(challenge.message.decode())
    return client, challenge


def salt_of(challenge: Challenge) -> bytes:
    return base64.b64decode(challenge.message.decode().split(",")[1].removeprefix("s="))


def iterations_of(challenge: Challenge) -> int:
    return int(challenge.message.decode().split(",")[2].removeprefix("i="))


def test_right_password_gets_in_and_the_broker_proves_itself(door: Door):
    found = door.password("alice", PENCIL)
    assert (found.name, found.roles, found.how) == ("alice", ("trader",), "password")
    assert found.expires_at is None
    assert found.permissions.may_publish({"topic": "orders"})


def test_broker_without_the_password_is_found_out_by_the_client(door: Door):
    client, challenge = begun(door)
    _, verifier = challenge.finish(client.get_client_final().encode())
    other = begun(door)[0]
    other.get_client_final()
    with pytest.raises(ScramException):
        other.set_server_final(verifier.decode())


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("alice", "pencil2"),
        ("nobody", PENCIL),
        ("bob", PENCIL),
        ("Alice", PENCIL),
        ("root/alice", "x"),
    ],
)
def test_wrong_password_unknown_user_and_user_without_password_are_told_alike(
    door: Door, user: str, password: str
):
    client, challenge = begun(door, user, password)
    with pytest.raises(LoginFailed, match=WRONG):
        challenge.finish(client.get_client_final().encode())


def test_unknown_users_are_asked_as_known_ones_are(door: Door):
    known, unknown, without = (begun(door, user)[1] for user in ("alice", "nobody", "bob"))
    assert iterations_of(known) == iterations_of(unknown) == iterations_of(without)
    assert len(salt_of(known)) == len(salt_of(unknown)) == len(salt_of(without))
    assert len({salt_of(known), salt_of(unknown), salt_of(without)}) == 3
    assert len(known.message) == len(unknown.message)


def test_made_up_salt_is_the_same_each_time_at_each_broker_and_after_a_restart(door: Door):
    door.folder.login_key.write_bytes(b"k" * 32)
    salts = set()
    for _ in range(3):
        door.logins = Logins(lambda: door.access, door.folder)
        salts |= {salt_of(begun(door, "nobody")[1]) for _ in range(2)}
    assert len(salts) == 1
    door.change(ROLES + f'[users.x]\nroles = []\npassword = "{make_password("x", 4096)}"')
    assert salt_of(begun(door, "nobody")[1]) in salts  # nor is it made from anybody's password
    door.folder.login_key.write_bytes(b"l" * 32)
    door.logins = Logins(lambda: door.access, door.folder)
    assert salt_of(begun(door, "nobody")[1]) not in salts


def test_without_a_file_made_up_salts_last_as_long_as_the_process(door: Door):
    first = salt_of(begun(door, "nobody")[1])
    assert salt_of(begun(door, "nobody")[1]) == first
    door.logins = Logins(lambda: door.access, door.folder)
    assert salt_of(begun(door, "nobody")[1]) != first


def test_short_secret_is_refused(door: Door):
    door.folder.login_key.write_bytes(b"k" * 31)
    with pytest.raises(InvalidConfiguration, match="must hold 32 random bytes"):
        Logins(lambda: door.access, door.folder)


def test_unknown_user_takes_about_as_long_as_a_known_one(door: Door):
    def cost(user: str) -> float:
        best = 1.0
        for _ in range(200):
            client = ScramClient([MECHANISM], user, PENCIL)
            first = Scram(MECHANISM, client.get_client_first().encode())
            start = time.process_time()
            challenge = door.logins.begin(first, None, NOW)
            best = min(best, time.process_time() - start)
            assert isinstance(challenge, Challenge)
        return best

    known, unknown = cost("alice"), cost("nobod")
    assert max(known, unknown) < 2 * min(known, unknown)


def test_proof_of_another_login_does_not_fit(door: Door):
    client, challenge = begun(door)
    proof = client.get_client_final().encode()
    challenge.finish(proof)
    # The same first message again: the broker's own number is another one.
    again = door.ask(f"n,,{client.client_first_bare}")
    with pytest.raises(LoginFailed, match=WRONG):
        again.finish(proof)
    # And with the number of now in it, the proof is one of something else.
    number = begun_number(again)
    forged = b"c=biws,r=" + number + b",p=" + proof.rpartition(b",p=")[2]
    with pytest.raises(LoginFailed, match=WRONG):
        door.ask(f"n,,{client.client_first_bare}").finish(forged)


def begun_number(challenge: Challenge) -> bytes:
    return challenge.message.split(b",")[0].removeprefix(b"r=")


def test_forged_number_with_an_old_proof_is_refused_in_its_own_login(door: Door):
    client, challenge = begun(door)
    proof = client.get_client_final().encode().rpartition(b",p=")[2]
    challenge.finish(b"c=biws,r=" + begun_number(challenge) + b",p=" + proof)
    again = door.ask(f"n,,{client.client_first_bare}")
    with pytest.raises(LoginFailed, match=WRONG):
        again.finish(b"c=biws,r=" + begun_number(again) + b",p=" + proof)


def test_challenge_can_be_answered_once(door: Door):
    client, challenge = begun(door)
    proof = client.get_client_final().encode()
    assert challenge.finish(proof)[0].name == "alice"
    with pytest.raises(LoginFailed, match=WRONG):
        challenge.finish(proof)
    client, challenge = begun(door)
    with pytest.raises(LoginFailed, match=WRONG):
        challenge.finish(b"garbage")
    with pytest.raises(LoginFailed, match=WRONG):  # no second try with the right one
        challenge.finish(client.get_client_final().encode())


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=alice",
        b"n,,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"n,a=root,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"p=tls-exporter,,n=alice,r=abc",
        b"n,,m=ext,n=alice,r=abc",
        b"n,,n=alice,n=bob,r=abc",
        b"n,,n=al=ice,r=abc",
        b"n,,n=alice\0,r=abc",
        b"n,,n=ali\nce,r=abc",
        b"n,,n=alice,r=a bc",
        b"\xff\xfe",
        "n,,n=\ufdfa,r=abc".encode(),  # one letter that would become eighteen
        "n,,n=\u202ealice,r=abc".encode(),
        b"n,,n=alice,r=" + b"a" * MESSAGE_MAX,
        b"," * 1000,
    ],
)
def test_garbage_in_the_first_message_is_told_as_a_wrong_password(door: Door, message: bytes):
    with pytest.raises(LoginFailed, match=WRONG):
        door.ask(message)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda _: b"\xff",
        lambda proof: proof.replace(b"c=biws", b"c=eSws"),
        lambda proof: proof.replace(b"c=biws", b"c=cD10bHMtdW5pcXVlLCw="),
        lambda proof: proof.replace(b"r=", b"r=x"),
        lambda proof: proof.replace(b",p=", b"x,p="),
        lambda proof: proof.rpartition(b",p=")[0],
        lambda proof: proof + b"A",
        lambda proof: proof.rpartition(b",p=")[0] + b",p=" + base64.b64encode(bytes(32)),
        lambda proof: proof.rpartition(b",p=")[0] + b",p=" + base64.b64encode(b"x"),
        lambda proof: proof.rpartition(b",p=")[0] + b",p=" + base64.b64encode(bytes(600)),
        lambda proof: proof + b" " * MESSAGE_MAX,
        lambda proof: b"m=x," + proof,
        lambda proof: proof + b"," + proof,
    ],
)
def test_garbage_in_the_proof_is_told_as_a_wrong_password(door: Door, change):
    client, challenge = begun(door)
    with pytest.raises(LoginFailed, match=WRONG):
        challenge.finish(change(client.get_client_final().encode()))


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=200)
    | st.text(max_size=80).map(lambda t: f"n,,n={t},r=abc".encode(errors="ignore"))
)
def test_any_bytes_lead_to_a_challenge_or_to_the_one_sentence(shared_door: Door, message: bytes):
    with pytest.raises(LoginFailed, match=WRONG):
        shared_door.ask(message).finish(message)


@pytest.fixture(scope="module")
def shared_door(tmp_path_factory: pytest.TempPathFactory) -> Door:
    return Door(tmp_path_factory.mktemp("security"))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "PLAIN", "SCRAM-SHA-256-PLUS", ""])
def test_there_is_one_mechanism(door: Door, mechanism: str):
    with pytest.raises(LoginFailed, match="proved by SCRAM-SHA-256 here, and by nothing else"):
        door.logins.begin(Scram(mechanism, b"n,,n=alice,r=abc"), None, NOW)


def test_user_who_is_revoked_or_changed_in_the_middle_does_not_get_in(door: Door):
    for text in (
        access_text() + '[revoked]\nusers = ["alice"]',
        ROLES,
        access_text("other"),
        access_text(),  # the same password, set anew
    ):
        client, challenge = begun(door)
        door.change(text)
        with pytest.raises(LoginFailed, match=WRONG):
            challenge.finish(client.get_client_final().encode())
        door.change(access_text())


def test_session_ends_with_its_password(door: Door):
    identity = door.password("alice", PENCIL)
    assert door.access.current(identity) == identity
    line = door.access.passwords[0]
    assert line.mark == identity.credential
    door.change(access_text())
    assert door.access.current(identity) is None


# What is kept


def test_names_and_passwords_beyond_ascii_work(door: Door):
    line = make_password("Füße ☂ x", ITERATIONS_MIN)
    door.change(f'{ROLES}[users."Zoë, =b"]\nroles = ["trader"]\npassword = "{line}"')
    assert door.password("Zoë, =b", "Füße ☂ x").name == "Zoë, =b"


@pytest.mark.parametrize("password", ["", "x" * 1025, "a\x00b", "a\nb", "\ud800"])
def test_what_cannot_be_a_password_is_refused_and_not_shown(password: str):
    with pytest.raises(InvalidConfiguration) as failure:
        make_password(password, ITERATIONS_MIN)
    assert not password or password not in str(failure.value)


@pytest.mark.parametrize("iterations", [0, 4095, 1_000_001])
def test_iterations_are_bounded(iterations: int):
    with pytest.raises(InvalidConfiguration, match="4,096 to 1,000,000 iterations"):
        make_password("x", iterations)


def test_kept_line_is_read_again_and_never_shown():
    line = make_password(PENCIL, ITERATIONS_MIN)
    found = read_password(line)
    assert isinstance(found, StoredPassword)
    assert repr(found) == "StoredPassword(iterations=4096)"
    assert make_password(PENCIL, ITERATIONS_MIN) != line
    for bad in (
        "pencil",
        line.replace("256", "1"),
        line.replace("4096", "4095"),
        line.replace("4096", "99999999"),
        line + "=",
        line[:-8],
        line.replace(":", "::"),
    ):
        with pytest.raises(InvalidConfiguration, match="octopis security password") as failure:
            read_password(bad)
        assert line[30:50] not in str(failure.value)


def test_init_makes_the_secret_for_its_owner_alone(octopis, tmp_path: Path):
    folder = tmp_path / "security"
    status, _, error = octopis("security", "init", str(folder), "--topology", "figure-7")
    assert (status, error) == (0, "")
    path = folder / "login.key"
    assert len(path.read_bytes()) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
