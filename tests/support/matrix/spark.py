"""The path of Spark's tasks: connections that block, for reading and for staging."""

from collections.abc import Callable, Mapping
from typing import Any

from octopis.client.address import parse_addresses
from octopis.client.credentials import secured
from octopis.core.wire.durable import decode_batch
from octopis.core.wire.published import encode_published
from octopis.pipeline.streaming.connection import Connection
from octopis.pipeline.streaming.staging import Attempt, Stage
from support.matrix.ground import Ground, Person
from support.matrix.path import WIDE, Path, Probe, on_anothers, own_durable, taken
from support.matrix.programs import SECRET
from support.matrix.refusals import may

READ_MAX = 100


def connected(person: Person, work: Callable[[Connection], Any]) -> Any:
    """Do something over a connection as a task of a query has it."""
    (address,) = parse_addresses(person.url)
    connection = Connection(address, SECRET, secured(person.credentials))
    try:
        return work(connection)
    finally:
        connection.close()


class Spark(Path):
    """Batch reader and sink, below Spark itself."""

    is_lasting = True

    def probes(self) -> Mapping[str, Probe]:
        acts: dict[str, Callable[[Connection, str], object]] = {
            "open": lambda each, name: each.open(name, None),
            "read": lambda each, name: each.batch(each.ask_to_read(name, 0, READ_MAX)),
            "acknowledge": lambda each, name: each.acknowledge(name, _epoch(each, name), 1),
        }
        found: dict[str, Probe] = {
            "list durables": lambda _, who: may(lambda: connected(who, lambda x: x.info("none"))),
            "stage an offer": _staging({"kind": "offer"}),
            "stage a secret": _staging({"kind": "secret"}),
        }
        for verb, act in acts.items():
            found[f"{verb} own"] = _on_own(act)
            found[f"{verb} another's"] = on_anothers(
                lambda _, who, name, act=act: connected(who, lambda each: act(each, name))
            )
        return found

    def look(self, ground: Ground, person: Person) -> set[str]:
        def work(connection: Connection) -> set[str]:
            name, wide = f"look-{ground.cell()}", " OR ".join(f"({each})" for each in WIDE)
            connection.open(name, wide)
            with ground.sync(person) as client:
                client.settled()
            cell, seen, after = ground.cell(), set[str](), 0
            ground.publish_samples(cell)
            while True:
                number = connection.ask_to_read(name, after, READ_MAX, 10_000)
                for each in decode_batch(connection.batch(number)).items:
                    after = each.position
                    if taken(each.notification.attributes, cell, seen):
                        return seen

        return connected(person, work)


def _on_own(act: Callable[[Connection, str], object]) -> Probe:
    def tried(ground: Ground, person: Person) -> bool:
        name = own_durable(ground, person)
        return may(lambda: connected(person, lambda each: act(each, name)))

    return tried


def _epoch(connection: Connection, name: str) -> int:
    found = connection.info(name)
    return 1 if found is None else found.epoch


def _staging(attributes: dict[str, Any]) -> Probe:
    def tried(ground: Ground, person: Person) -> bool:
        cell = ground.cell()

        def work() -> None:
            (address,) = parse_addresses(person.url)
            stage = Stage(address, SECRET, 0.0, person.credentials)
            try:
                stage.limits()
                said = {**attributes, "cell": cell}
                row = encode_published(said, b"", stage.publisher, 1, 1)
                attempt = Attempt(f"q{cell}", 0, 0)
                stage.stage(attempt, 0, b"\x91" + row)
                stage.wait()
                stage.commit(attempt.query, 0, [(0, attempt.number, 1)])
            finally:
                stage.close()

        said = may(work)
        assert len(ground.arrived(cell, person)) == said
        return said

    return tried
