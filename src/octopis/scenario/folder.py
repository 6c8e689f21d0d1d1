"""A scenario on disk: one folder with a TOML document and three Parquet tables."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.topology import NamedTopology
from octopis.errors import InvalidConfiguration
from octopis.files import whole_folder
from octopis.scenario import publications, tables
from octopis.scenario.document import (
    DeadBroker,
    ScenarioDocument,
    check_delivery,
    dead_brokers,
    parse_scenario,
)

DOCUMENT = "scenario.toml"
SUBSCRIPTIONS = "subscriptions.parquet"
PUBLISHERS = "publishers.parquet"
NOTIFICATIONS = "notifications.parquet"
"""A file or, from Spark, a folder of parts."""

FILES = (DOCUMENT, SUBSCRIPTIONS, PUBLISHERS, NOTIFICATIONS)


@dataclass(frozen=True)
class Scenario:
    """A scenario that was read from its folder; notifications are read when they are needed."""

    folder: Path
    document: ScenarioDocument
    topology: NamedTopology
    subscribers: list[tables.Subscriber]
    publishers: list[tables.Publisher]
    notification_count: int

    def publications(self) -> Iterator[publications.Publications]:
        """Yield the notifications of living publishers, batch by batch."""
        found = publications.read_publications(self.folder / NOTIFICATIONS, self.publishers)
        silent = {n for n, each in enumerate(self.publishers) if each.broker in self.dead}
        if not silent:
            return found
        heard = (batch.without(silent) for batch in found)
        return (batch for batch in heard if batch.publishers)

    def with_algorithm(self, algorithm: Algorithm) -> "Scenario":
        """Return the scenario routed by another algorithm; its tables stay the same.

        Raises InvalidConfiguration where it asks for a delivery that the algorithm does not have.
        """
        routing = msgspec.structs.replace(self.document.routing, algorithm=algorithm)
        document = msgspec.structs.replace(self.document, routing=routing)
        check_delivery(routing, document.delivery, str(self.folder))
        return replace(self, document=document)

    def with_dead(self, brokers: Iterable[BrokerId]) -> "Scenario":
        """Return the scenario with these brokers dead, too; raise InvalidConfiguration."""
        dead = sorted(self.dead.union(brokers))
        document = msgspec.structs.replace(
            self.document, dead_brokers=tuple(DeadBroker(broker.short) for broker in dead)
        )
        dead_brokers(document, self.topology, str(self.folder))
        return replace(self, document=document)

    @cached_property
    def dead(self) -> frozenset[BrokerId]:
        """The brokers that are dead during the whole run."""
        return dead_brokers(self.document, self.topology, str(self.folder))

    def among_living(self) -> "Scenario":
        """Return the scenario without subscribers at dead brokers; their publishers are silent."""
        if not self.dead:
            return self
        living = [each for each in self.subscribers if each.broker not in self.dead]
        silent = [each.name for each in self.publishers if each.broker in self.dead]
        unsent = publications.count_of(self.folder / NOTIFICATIONS, silent)
        left = self.notification_count - unsent
        return replace(self, subscribers=living, notification_count=left)

    def notification_schema(self) -> pa.Schema:
        """Return the columns of the notifications table."""
        return publications.notification_schema(self.folder / NOTIFICATIONS)

    @cached_property
    def digest(self) -> str:
        """A checksum over everything that the scenario says."""
        return digest_of(self.folder)


def digest_of(folder: Path) -> str:
    """Return the checksum of a scenario without reading what it says."""
    total = sha256()
    try:
        for name in FILES:
            for part in tables.part_files(folder / name):
                with part.open("rb") as opened:
                    total.update(file_digest(opened, "sha256").digest())
    except OSError as failure:
        raise InvalidConfiguration(f"{folder} is no whole scenario: {failure}") from failure
    return total.hexdigest()


def read_scenario(folder: Path) -> Scenario:
    """Return the scenario in `folder`, or raise an error that says what is wrong with it."""
    if folder.name == DOCUMENT and folder.is_file():
        folder = folder.parent
    path = folder / DOCUMENT
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as failure:
        hint = "make a scenario with octopis sim example"
        raise InvalidConfiguration(f"there is no {path}; {hint}") from failure
    except (OSError, UnicodeDecodeError) as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure}") from failure
    document, topology = parse_scenario(text, str(path))
    return Scenario(
        folder,
        document,
        topology,
        tables.read_subscribers(folder / SUBSCRIPTIONS, topology.scot),
        tables.read_publishers(folder / PUBLISHERS, topology.scot),
        publications.count_notifications(folder / NOTIFICATIONS),
    )


def copy_table(source: Path, target: Path) -> None:
    """Copy a table of a scenario, whether it is a file or a folder of parts."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def write_scenario(
    folder: Path,
    document: str,
    subscriptions: pa.Table,
    publishers: pa.Table,
    notifications: pa.Table,
) -> None:
    """Write a scenario into a folder that is new or empty.

    Raises an error, and writes nothing, where the document makes no sense.
    """
    parse_scenario(document, str(folder / DOCUMENT))
    with whole_folder(folder) as draft:
        pq.write_table(subscriptions, draft / SUBSCRIPTIONS, compression="zstd")
        pq.write_table(publishers, draft / PUBLISHERS, compression="zstd")
        pq.write_table(notifications, draft / NOTIFICATIONS, compression="zstd")
        (draft / DOCUMENT).write_text(document, encoding="utf-8")
