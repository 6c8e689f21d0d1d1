"""The path of commands: real ones, each in a process of its own."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from threading import Semaphore
from typing import Any

from octopis.errors import InvalidSubscription, NotPermitted
from support.matrix.ground import Ground, Person
from support.matrix.path import WIDE, Path, Probe, on_anothers, own_durable, publishing, taken
from support.matrix.refusals import is_refusal, may
from support.overlay_command import OCTOPIS

AT_ONCE = Semaphore(3)
"""Commands that run at a time: each takes half a second of a core before it begins."""

LIMIT_S = 60.0


def _words(person: Person, *words: str) -> list[str]:
    credentials = () if person.file is None else ("--credentials", str(person.file))
    return [OCTOPIS, *words, *credentials]


def _environment(ground: Ground) -> dict[str, str]:
    """Return one in which the overlay of this machine, and its operator's file, are not found."""
    return {**os.environ, "OCTOPIS_STATE": str(ground.shell.folder / "nothing")}


def run(ground: Ground, person: Person, *words: str) -> str:
    """Run a command, and return what it prints. Raises NotPermitted where it was refused."""
    with AT_ONCE:
        ended = subprocess.run(
            _words(person, *words),
            env=_environment(ground),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    _check(ended.returncode, ended.stderr)
    return ended.stdout


def _check(status: int, said: str) -> None:
    if status:
        plain = " ".join(said.split())
        assert is_refusal(plain), f"exit status {status}: {said}"
        raise NotPermitted(plain)


class Commands(Path):
    """`octopis pub`, `sub`, `durable` and `overlay status`."""

    def probes(self) -> Mapping[str, Probe]:
        published = publishing(_publish)
        return {
            **{verb: published[verb] for verb in ("publish an offer", "publish a secret")},
            "see the status": lambda ground, person: may(
                lambda: run(ground, person, "overlay", "status", "--config", str(person.config))
            ),
            "list durables": lambda ground, person: may(lambda: _listed(ground, person)),
            "list durables of others": lambda ground, who: may(lambda: _list_others(ground, who)),
            "read own": lambda ground, person: may(
                lambda: _read(ground, person, own_durable(ground, person))
            ),
            "drop own": lambda ground, person: may(
                lambda: _drop(ground, person, own_durable(ground, person))
            ),
            "read another's": on_anothers(_read),
            "drop another's": on_anothers(_drop, bare=False),
            "move another's": on_anothers(_move, bare=False),
        }

    def look(self, ground: Ground, person: Person) -> set[str]:
        return _look(ground, person, *WIDE)


class DurableCommand(Path):
    """`octopis sub --durable`."""

    is_lasting = True

    def probes(self) -> Mapping[str, Probe]:
        return {}

    def look(self, ground: Ground, person: Person) -> set[str]:
        wide = " OR ".join(f"({each})" for each in WIDE)
        return _look(ground, person, wide, "--durable", f"look-{ground.cell()}")


def _publish(ground: Ground, person: Person, attributes: dict[str, Any]) -> None:
    run(
        ground,
        person,
        "pub",
        person.url,
        *(f"{name}={value}" for name, value in attributes.items()),
    )


def _listed(ground: Ground, person: Person) -> list[str]:
    found = run(ground, person, "durable", "list", "--json", "--config", str(person.config))
    return [each["name"] for each in json.loads(found)["durables"]]


def _list_others(ground: Ground, person: Person) -> None:
    if not any(name.startswith("victim/") for name in _listed(ground, person)):
        raise InvalidSubscription("there is no durable subscription of others", "victim/")


def _read(ground: Ground, person: Person, name: str) -> None:
    words = ("--durable", name, "--count", "1")
    assert json.loads(run(ground, person, "sub", person.url, *words))["position"] == 1


def _drop(ground: Ground, person: Person, name: str) -> None:
    run(ground, person, "durable", "drop", name, "--yes", "--config", str(person.config))


def _move(ground: Ground, person: Person, name: str) -> None:
    run(
        ground,
        person,
        "durable",
        "move",
        name,
        "--to",
        "b,0",
        "--config",
        str(person.config),
    )


def _look(ground: Ground, person: Person, *words: str) -> set[str]:
    """Subscribe, have the samples published, and return which are printed."""
    seen: set[str] = set()
    with (
        AT_ONCE,
        subprocess.Popen(
            _words(person, "sub", person.url, *words),
            env=_environment(ground),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        said = ""
        while "every broker" not in said and (read := process.stderr.readline()):
            said += read
        if "every broker" not in said:
            _check(process.wait(LIMIT_S), said)
        cell = ground.cell()
        ground.publish_samples(cell)
        for printed in process.stdout:
            if taken(json.loads(printed)["attributes"], cell, seen):
                break
        process.send_signal(signal.SIGINT)
    return seen
