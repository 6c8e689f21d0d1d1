"""Every role, every verb, every path: what is allowed is what the table says, and nothing else.

The roles are in support/matrix/ground.py, as an operator writes them. `plain` speaks no TLS,
`nobody` says nothing of himself, `unknown` has a signed token for a role that is not there,
`revoked` and `expired` were operators. `denied` has two roles: one may do all, and the other one
denies secrets.
"""

from collections.abc import Iterator

import pytest
from _pytest.mark import ParameterSet

from support.matrix.gateway import Http, HttpDurable, WebSocket
from support.matrix.ground import SAMPLES, Ground, running
from support.matrix.path import Path
from support.matrix.programs import Async, Durable, Replay, Sync
from support.matrix.shell import Commands, DurableCommand
from support.matrix.spark import Spark
from support.overlay_command import wait_until

PATHS: dict[str, Path] = {
    "async": Async(),
    "sync": Sync(),
    "durable": Durable(),
    "replay": Replay(),
    "command": Commands(),
    "command-durable": DurableCommand(),
    "spark": Spark(),
    "gateway": Http(),
    "gateway-durable": HttpDurable(),
    "gateway-socket": WebSocket(),
}
"""A path more is a line more."""

ROLES = (
    *("plain", "nobody", "unknown", "revoked", "expired"),
    *("publisher", "subscriber", "denied", "tenant", "durable", "status", "operator"),
)
TABLE = """
                            pla nob unk rev exp   pub sub den ten dur sta ope
publish an offer             .   .   .   .   .     X   .   X   X   X   .   X
publish a secret             .   .   .   .   .     .   .   .   X   .   .   X
publish one without a kind   .   .   .   .   .     .   .   .   X   .   .   X
publish as the tenant b      .   .   .   .   .     X   .   X   .   X   .   X
subscribe                    .   .   .   .   .     .   X   X   X   X   .   X
see a cheap offer            .   .   .   .   .     .   X   X   .   X   .   X
see a dear offer             .   .   .   .   .     .   .   X   .   .   .   X
see a secret                 .   .   .   .   .     .   X   .   .   X   .   X
see one without a kind       .   .   .   .   .     .   X   .   .   X   .   X
see one without a price      .   .   .   .   .     .   .   X   .   .   .   X
see one of the tenant a      .   .   .   .   .     .   .   X   X   .   .   X
see the status               .   .   .   .   .     .   .   .   .   .   X   X
list durables                .   .   .   .   .     .   .   X   X   X   X   X
list durables of others      .   .   .   .   .     .   .   .   .   .   X   X
stage an offer               .   .   .   .   .     .   .   X   X   X   .   X
stage a secret               .   .   .   .   .     .   .   .   X   .   .   X
open own                     .   .   .   .   .     .   .   X   X   X   .   X
read own                     .   .   .   .   .     .   .   X   X   X   .   X
acknowledge own              .   .   .   .   .     .   .   X   X   X   .   X
drop own                     .   .   .   .   .     .   .   X   X   X   .   X
move own                     .   .   .   .   .     .   .   X   X   X   .   X
open another's               .   .   .   .   .     .   .   .   .   .   .   .
read another's               .   .   .   .   .     .   .   .   .   .   .   .
share another's              .   .   .   .   .     .   .   .   .   .   .   .
acknowledge another's        .   .   .   .   .     .   .   .   .   .   .   .
drop another's               .   .   .   .   .     .   .   .   .   .   .   .
move another's               .   .   .   .   .     .   .   .   .   .   .   .
take a name                  .   .   .   .   .     .   .   .   .   .   .   .
take a session               .   .   .   .   .     .   .   .   .   .   .   .
"""
"""X: allowed. On a path through a disk, to subscribe and to see need durable = true as well."""

HAS_A_DISK = "open own"
Tried = dict[str, bool | BaseException]


def read_table() -> dict[tuple[str, str], bool]:
    """Return the table by verb and role."""
    _, heading, *rows = TABLE.rstrip().split("\n")
    assert heading.split() == [role[:3] for role in ROLES]
    found = {}
    for row in rows:
        verb, marks = row[:27].strip(), row[27:].split()
        assert len(marks) == len(ROLES)
        found |= {(verb, role): mark == "X" for role, mark in zip(ROLES, marks, strict=True)}
    return found


ALLOWED = read_table()
VERBS = list(dict.fromkeys(verb for verb, _ in ALLOWED))
QUICK = {
    "command": ("nobody", "revoked", "subscriber", "denied", "operator"),
    "command-durable": ("nobody", "denied", "durable", "operator"),
}
"""A command takes half a second, so `make test` has some roles there; `-m long` runs the others."""


def cell(path: str, role: str, verb: str) -> ParameterSet:
    """Return one cell of the matrix as a test."""
    marks = () if role in QUICK.get(path, ROLES) else (pytest.mark.long,)
    return pytest.param(path, role, verb, id=f"{path}-{role}-{verb}", marks=marks)


CELLS = [
    cell(path, role, verb) for path, way in PATHS.items() for role in ROLES for verb in way.verbs()
]


def expected(path: str, role: str, verb: str) -> bool:
    """Return what the table says."""
    is_seeing = verb == "subscribe" or verb in SAMPLES
    needs_disk = PATHS[path].is_lasting and is_seeing
    return ALLOWED[verb, role] and (ALLOWED[HAS_A_DISK, role] or not needs_disk)


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with running(tmp_path_factory.mktemp("matrix")) as found:
        yield found


@pytest.fixture(scope="session")
def tried() -> dict[tuple[str, str], Tried]:
    """What somebody has tried on a path: all verbs at once, when the first of them is asked for."""
    return {}


@pytest.mark.parametrize(("path", "role", "verb"), CELLS)
def test_what_a_role_may_do_on_a_path_is_what_the_table_says(
    path: str, role: str, verb: str, ground: Ground, tried: dict[tuple[str, str], Tried]
):
    if (path, role) not in tried:
        tried[path, role] = PATHS[path].tried(ground, ground.person(role))
    found = tried[path, role][verb]
    if isinstance(found, BaseException):
        raise found
    assert found == expected(path, role, verb)


def test_every_verb_of_the_table_is_tried_on_some_path_and_no_other_is():
    tried = {verb for way in PATHS.values() for verb in way.verbs()}
    assert tried == {*VERBS}


CONTROLS = [
    pytest.param(path, verb, id=f"{path}-{verb}")
    for path, way in PATHS.items()
    for verb in way.verbs()
    if (verb.endswith("another's") and path != "command") or verb.startswith("take ")
]
"""Commands name another's as lists do, and the owner's have "drop own" for that."""


@pytest.mark.parametrize(("path", "verb"), CONTROLS)
def test_what_nobody_may_do_to_another_works_for_the_owner_so_that_the_table_can_fail(
    path: str, verb: str, ground: Ground
):
    assert PATHS[path].probes()[verb](ground, ground.person("victim"))


def test_audit_logs_are_whole_and_hold_what_was_refused(ground: Ground):
    nobody, mute = ground.person("nobody"), ground.person("status")
    for person in (nobody, mute):
        assert not PATHS["async"].probes()["publish an offer"](ground, person)
    logs = sorted((ground.folder.path / "audit").glob("*.jsonl"))
    assert len(logs) == 4

    def text() -> str:  # what has just happened is written a moment later
        return "".join(log.read_text(encoding="utf-8") for log in logs)

    wait_until(lambda: '"event":"login_failed"' in text())
    wait_until(lambda: '"event":"not_permitted"' in text())
    for log in logs:
        assert ground.shell.run("security", "audit", "verify", str(log)).returncode == 0
