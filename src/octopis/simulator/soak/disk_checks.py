"""The laws of delivery where brokers have disks, checked when all is at rest.

- nothing lost: durable subscriptions have all that was answered, if the publisher's host knew them,
  or all brokers had them on disk, when it was accepted; ordinary subscribers that are connected
  still have all that was answered by hosts that knew them, or are told where there was no way to
  them for so long that they were given up;
- nothing twice, in order, nothing unasked: as without disks, for both;
- the same again: a position is read again as it was, whatever died meanwhile;
- what is acknowledged stays so, and nothing that was made is forgotten (both while it runs);
- told: who lets the oldest be dropped is told of as many as it lacks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from octopis.core.delivery.lasting.records import Policy
from octopis.core.model import BrokerId
from octopis.simulator.soak.clients import Subscriber
from octopis.simulator.soak.disk import Disk
from octopis.simulator.soak.disk_clients import Reader
from octopis.simulator.soak.log import Accepted, Log, Name


class Settled:
    """Since when durable subscriptions are on all disks."""

    def __init__(self, disks: dict[BrokerId, Disk], readers: Iterable[Reader]) -> None:
        self._disks = disks
        self._waiting = list(readers)
        self.since_ns: dict[str, int] = {}

    def look(self, now_ns: int) -> None:
        """See which are."""
        for reader in list(self._waiting):
            if reader.is_made and all(self._has(name, reader) for name in self._disks):
                self.since_ns[reader.id] = now_ns
                self._waiting.remove(reader)

    def _has(self, name: BrokerId, reader: Reader) -> bool:
        host = reader.planned.host
        known = self._disks[name].state.get(("host", str(host)), b"")
        return name == host or reader.id.encode() in known


class DiskLaws:
    """Checks what publishers, subscribers and readers know in the end."""

    def __init__(self, log: Log, now_ns: int, settled: Settled) -> None:
        self._log, self._now_ns, self._settled = log, now_ns, settled
        self._accepted: dict[Name, Accepted] = {each.name: each for each in log.accepted}
        """As they were accepted for the last time: what was before is lost, and had no answer."""

    def check(self, subscribers: Iterable[Subscriber], readers: Iterable[Reader]) -> None:
        """Check all of them."""
        for reader in readers:
            self._check_reader(reader)
        got: dict[str, set[Name]] = {}
        for each in self._log.delivered:
            got.setdefault(each.client, set()).add(each.name)
        for subscriber in subscribers:
            self._check_subscriber(subscriber, got.get(subscriber.planned.name, set()))

    def _check_reader(self, reader: Reader) -> None:
        client, low, high = reader.planned.name, reader.planned.low, reader.planned.high
        got: set[Name] = set()
        last: dict[str, int] = {}
        for position, (publisher, number) in sorted(reader.positions.items()):
            detail = f"{client} reads {publisher} {number} at {position}"
            if (publisher, number) in got:
                self._violated("nothing twice", detail)
            elif number < last.get(publisher, -1):
                self._violated("in order", detail)
            topic = reader.topics[publisher, number]
            if (publisher, number) not in self._accepted or not low <= topic <= high:
                self._violated("nothing unasked", detail)
            got.add((publisher, number))
            last[publisher] = number
        lacking = [each for each in self._owed(reader) if each.name not in got]
        if reader.planned.policy is Policy.REFUSE:
            holes = set(range(1, max(reader.positions, default=0))) - reader.positions.keys()
            if holes:
                self._violated("dense", f"{client} has read nothing at {sorted(holes)}")
            for each in lacking:
                self._lacks(client, each)
        elif reader.planned.policy is Policy.DROP_OLDEST and len(lacking) > len(reader.missing):
            detail = f"{client} lacks {len(lacking)}, and is told of {len(reader.missing)}"
            self._violated("told", detail)
        self._log.count("dropped by policies", len(lacking))

    def _owed(self, reader: Reader) -> Iterator[Accepted]:
        since_ns = self._settled.since_ns.get(reader.id)
        for each in self._answered(reader.planned.low, reader.planned.high):
            is_settled = since_ns is not None and since_ns < each.at_ns
            if reader.id in each.known or is_settled:
                yield each

    def _check_subscriber(self, subscriber: Subscriber, got: set[Name]) -> None:
        """Check that who is connected still has everything, or is told of what was given up."""
        if not subscriber.sessions or subscriber.sessions[-1][1] is not None:
            return
        client, number = subscriber.planned, len(subscriber.sessions)
        lacking: dict[BrokerId, list[Accepted]] = defaultdict(list)
        for each in self._answered(client.low, client.high):
            if f"{client.name}.{number}" in each.known and each.name not in got:
                lacking[each.host].append(each)
        for of, missing in lacking.items():
            first_ns = min(each.at_ns for each in missing)
            told = [
                each.count
                for each in self._log.told
                if (each.host, each.of) == (client.host, of) and each.at_ns >= first_ns
            ]
            if None not in told and sum(filter(None, told)) < len(missing):
                self._lacks(client.name, missing[0])

    def _answered(self, low: int, high: int) -> list[Accepted]:
        return [
            each
            for each in self._accepted.values()
            if low <= each.topic <= high and each.name in self._log.answered
        ]

    def _lacks(self, client: str, each: Accepted) -> None:
        publisher, number = each.name
        at = f"accepted at {each.at_ns / 1e9:.6f} s"
        self._violated("nothing lost", f"{client} lacks {publisher} {number}, {at}")

    def _violated(self, law: str, detail: str) -> None:
        self._log.violated(self._now_ns, law, detail)
