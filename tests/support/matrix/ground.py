"""One overlay with security and disks, with everybody in it whom the matrix of permissions knows.

Whoever is let in works at the broker a,0, and whoever writes for others at b,0. Strangers knock at
b,1: after failed logins a broker lets everybody from their address wait, and members shall not.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import jwt

from octopis import SyncClient, connect_sync
from octopis.security.certificates import read_certificate
from octopis.security.making import add_client
from octopis.security.tokens import issue_token, read_private_key
from support.gateway import gateway_run
from support.live import line
from support.overlay_command import Shell, Up
from support.secure import DAYS, Folder

HELLO_S = 1.5
"""A refused login is answered 0.5 s before this is over, at the latest."""

OVERLAY = f"""
[topology]
name = "matrix"
[acyclic_factor]
edges = [["a", "b"]]
[connectivity_factor]
clusters = 2
[limits]
drain_s = 1.0
hello_s = {HELLO_S}
"""
DOOR = """
[topology]
name = "door"
[acyclic_factor]
vertices = ["b"]
edges = []
[connectivity_factor]
clusters = 1
"""
"""What commands of strangers take for the overlay: they ask at one broker alone."""

ACCESS = """
[roles.publisher]
publish = "kind = 'offer'"

[roles.subscriber]
subscribe = "price < 100"

[roles.everything]             # `denied` has this one too, and deny wins
publish = "TRUE"
subscribe = "TRUE"
durable = true

[roles.denied]
deny_publish = "kind = 'secret'"
deny_subscribe = "kind = 'secret'"

[roles.tenant]
publish = "TRUE"
subscribe = "tenant = 'a'"
force = { tenant = "a" }
durable = true

[roles.durable]
publish = "kind = 'offer'"
subscribe = "price < 100"
durable = true

[roles.status]
status = true

[roles.operator]
publish = "TRUE"
subscribe = "TRUE"
durable = true
status = true

[users]
publisher = { roles = ["publisher"] }
subscriber = { roles = ["subscriber"] }
denied = { roles = ["everything", "denied"] }
tenant = { roles = ["tenant"] }
durable = { roles = ["durable"] }
status = { roles = ["status"] }
operator = { roles = ["operator"] }
victim = { roles = ["operator"] }
revoked = { roles = ["operator"] }

[revoked]
certificates = ["SERIAL"]
tokens = ["TOKEN"]
"""
BY_CERTIFICATE = (
    *("publisher", "subscriber", "denied", "tenant", "durable", "status", "victim", "revoked"),
)
STRANGERS = ("plain", "nobody", "unknown", "revoked", "expired")

SAMPLES: dict[str, dict[str, Any]] = {
    "see a cheap offer": {"kind": "offer", "price": 5, "tenant": "b"},
    "see a dear offer": {"kind": "offer", "price": 500, "tenant": "b"},
    "see a secret": {"kind": "secret", "price": 5, "tenant": "b"},
    "see one without a kind": {"price": 5, "tenant": "b"},
    "see one without a price": {"kind": "offer", "tenant": "b"},
    "see one of the tenant a": {"kind": "offer", "price": 500, "tenant": "a"},
}
"""What somebody else publishes."""

FENCE = {"kind": "fence", "price": 1, "tenant": "a"}
"""What is published behind it, and whoever may see anything sees."""


class Person(NamedTuple):
    """Somebody who tries something: with which credentials, where, and with which shell's file."""

    name: str
    file: Path | None
    url: str
    config: Path

    @property
    def credentials(self) -> str | None:
        return None if self.file is None else str(self.file)


class Ground:
    """The overlay while it runs."""

    def __init__(self, shell: Shell, folder: Folder, up: Up) -> None:
        self.shell, self.folder, self._up = shell, folder, up
        self.urls = {broker: up.url(broker) for broker in up.addresses}
        self._configs = [
            self._config("members.toml", OVERLAY, up.addresses),
            self._config("strangers.toml", DOOR, {"b,0": up.addresses["b,1"]}),
        ]
        self._gateways: dict[str, str] = {}
        self._cells = count(1)
        self._came: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self._news = threading.Condition()
        operator = folder.files.credentials("operator")
        self._reader = connect_sync(self.urls["b,0"], credentials=operator)
        self._writers = {
            broker: connect_sync(self.urls[broker], credentials=operator)
            for broker in ("a,0", "b,0", "b,1")
        }
        self._reading = threading.Thread(target=self._read)

    def _config(self, name: str, text: str, addresses: dict[str, str]) -> Path:
        for broker, address in addresses.items():
            text += f'[brokers."{broker}"]\nport = {address.rpartition(":")[2]}\n'
        path = self.folder.path.parent / name
        path.write_text(text, encoding="utf-8")
        return path

    @contextmanager
    def open(self) -> Iterator["Ground"]:
        """Have a gateway at each of the two brokers, and listen to all that is published."""
        with ExitStack() as stack:
            for url in (self.urls["a,0"], self.urls["b,1"]):
                words = (url, "--ca", str(self.folder.files.ca))
                found = stack.enter_context(gateway_run(self.shell, self._up, *words))
                self._gateways[url] = found.url
            yield from self._listen()

    def _listen(self) -> Iterator["Ground"]:
        clients = [self._reader, *self._writers.values()]
        for each in clients:
            each.open()
        self._stream = self._reader.subscribe("cell IS NOT NULL")
        self._stream.open()
        self._reader.settled()
        self._reading.start()
        with (
            self.sync(self.person("victim")) as victim,
            victim.subscribe(*("x = 1",), durable="there"),
        ):
            pass  # so that there is one to be listed
        yield self
        self._writers["a,0"].publish({"cell": 0, **FENCE})
        self._reading.join()
        for each in clients:
            each.close()

    def _read(self) -> None:
        for each in self._stream:
            attributes = dict(each.attributes)
            with self._news:
                self._came[attributes.pop("cell")].append(attributes)
                self._news.notify_all()
            if self._came.get(0):
                return

    def person(self, name: str) -> Person:
        file = None if name == "plain" else self.folder.files.credentials(name)
        is_stranger = name in STRANGERS
        url = self.urls["b,1" if is_stranger else "a,0"]
        return Person(name, file, url, self._configs[is_stranger])

    def gateway(self, person: Person) -> str:
        """Return the gateway whose overlay is the broker at which this person knocks elsewhere."""
        return self._gateways[person.url]

    def token(self, person: Person) -> str | None:
        """Return what this person says to a gateway, which takes tokens alone."""
        if person.name in {"plain", "nobody"}:
            return None
        written = self.folder.files.clients / f"{person.name}.token"
        if written.exists():
            return written.read_text(encoding="utf-8")
        return self.folder.token(person.name)

    def settled(self) -> None:
        """Wait until every broker knows what was subscribed to before, at the members' broker."""
        self._writers["a,0"].settled()

    def cell(self) -> int:
        """Return a number by which what is tried for one cell is told from all else."""
        return next(self._cells)

    def publish_samples(self, cell: int) -> None:
        """Publish what somebody may see or not, and behind it what everybody may who may at all."""
        named = [{**each, "sample": name} for name, each in SAMPLES.items()]
        self._writers["b,0"].publish_many({**each, "cell": cell} for each in (*named, FENCE))

    def arrived(self, cell: int, person: Person) -> list[dict[str, Any]]:
        """Return what the reader has got of a cell, once all from the person's broker is there."""
        broker = next(broker for broker, url in self.urls.items() if url == person.url)
        self._writers[broker].publish({"cell": cell, **FENCE})
        deadline = time.monotonic() + 20
        with self._news:
            while FENCE not in self._came[cell]:
                assert self._news.wait(deadline - time.monotonic()), "nothing arrives"
            return [each for each in self._came[cell] if each != FENCE]

    def sync(self, person: Person, **options: Any) -> SyncClient:
        return connect_sync(
            person.url, credentials=person.credentials, reconnect_s=0, connect_s=10.0, **options
        )


@contextmanager
def running(path: Path) -> Iterator[Ground]:
    """Run the overlay of the matrix, as a user would."""
    folder = Folder(path / "sec", line(2, clusters=2))
    _fill(folder)
    shell = Shell(path)
    words = ("--config", shell.config(OVERLAY), "--secure", "sec", "--durable", "kept")
    with shell.up(*words, "--processes", "2") as up:
        with Ground(shell, folder, up).open() as ground:
            yield ground
        assert up.stop()[0] == 0
    shell.end()


def _fill(folder: Folder) -> None:
    """Write roles, users, and the credentials of everybody."""
    files = folder.files
    now = read_certificate(files.ca).not_valid_before_utc
    for name in BY_CERTIFICATE:
        add_client(files, folder.authority, name, DAYS, now)
    revoked = read_certificate(files.client_certificate("revoked")).serial_number
    key = read_private_key(files.token_key)
    taken_back = folder.token("revoked")
    (files.clients / "revoked.token").write_text(taken_back, encoding="utf-8")
    number = jwt.decode(taken_back, options={"verify_signature": False})["jti"]
    folder.say(ACCESS.replace("SERIAL", f"{revoked:X}").replace("TOKEN", number))
    ca = f"ca = {json.dumps(str(files.ca))}\n"
    files.credentials("nobody").write_text(ca, encoding="utf-8")
    for name, roles, age_s in (("unknown", ["ghost"], 0.0), ("expired", ["operator"], 3_600.0)):
        about: dict[str, Any] = {"audience": "octopis", "now": time.time() - age_s}
        token = issue_token(key, name, roles, lifetime_s=1_800.0, **about)
        (files.clients / f"{name}.token").write_text(token, encoding="utf-8")
        text = f'{ca}token_file = "{name}.token"\n'
        files.credentials(name).write_text(text, encoding="utf-8")
