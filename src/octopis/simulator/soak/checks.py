"""The laws of delivery, checked by what publishers and subscribers know, and by what is on wires.

- nothing twice: no client gets a notification twice, also not after its host was restarted;
- in order: a client gets what a publisher has published in its order;
- nothing unasked: a client gets what was published and matches what it asks for;
- nothing lost: between hosts that live every subscriber gets all that matches;
- told: what is lost by the restart of a host, its clients or those of the target are told of;
- counted: what is given up for a dead host is counted there, and none else is given up;
- nobody waits for the dead: publishers are not held up for much longer than `give_up_s`;
- to those that lack it: nothing is sent again to a host that is known to have it;
- bounded: neither windows nor buffers grow beyond their bounds, but by what is taken together;
- rest: soon after the last fault everything has arrived, and nothing is kept.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from octopis.core.delivery.posts import Ack
from octopis.core.model import BrokerId
from octopis.core.routing.messages import NotificationMessage
from octopis.simulator.soak.clients import Publisher, Subscriber
from octopis.simulator.soak.log import Accepted, Log, Name
from octopis.simulator.soak.node import Node
from octopis.simulator.soak.plan import MS, Kind, Plan, PlannedSubscriber

TOGETHER_MAX = 6
"""A publisher's burst is accepted as a whole."""

_WAIT_SLACK_NS = 6_000 * MS
"""Copies of acknowledgements come late, too, and then a host seems to live for longer."""


class OnTheWay:
    """Laws that are checked while a run goes on."""

    def __init__(self, plan: Plan, log: Log) -> None:
        self._plan, self._log = plan, log
        self._has: dict[tuple[BrokerId, int, int, int], int] = {}
        self.now: Callable[[], int] = lambda: 0

    def hears(self, node: Node, ack: Ack) -> None:
        """Note what a host is known to have."""
        if ack.stream == node.stream and ack.last is not None:
            key = node.id, node.life, ack.by, ack.life
            self._has[key] = max(ack.last, self._has.get(key, 0))

    def sends_again(self, node: Node, messages: list[NotificationMessage]) -> None:
        """Check that nothing is sent again to those that have it."""
        self._log.count("sent again", len(messages))
        numbers = [message.number for message in messages]
        self._log.tell(self.now(), f"{node.id} sends again {_ranges(numbers)}")
        lives = {channel.place: channel.life for channel in node.channels.sender.channels}
        for message in messages:
            for place, life in lives.items():
                has = self._has.get((node.id, node.life, place, life), 0)
                if message.targets >> place & 1 and message.number <= has:
                    broker = self._plan.scot.brokers[place]
                    self._violated(
                        "to those that lack it", f"{node.id} sends {message.number} to {broker}"
                    )

    def looks(self, node: Node) -> None:
        """Check that windows and buffers are bounded."""
        options, sender = self._plan.options, node.channels.sender
        for channel in sender.channels:
            if len(channel.pending) >= options.window + TOGETHER_MAX and not channel.behind:
                self._violated("bounded", f"{node.id} has {len(channel.pending)} under way")
        largest = TOGETHER_MAX * max(publisher.payload for publisher in self._plan.publishers)
        if sender.bytes >= options.bytes + largest:
            self._violated("bounded", f"{node.id} keeps {sender.bytes} bytes")
        streams = len(self._plan.hosts)
        if node.channels.receiver.held > options.window * streams:
            self._violated("bounded", f"{node.id} holds {node.channels.receiver.held} back")

    def _violated(self, law: str, detail: str) -> None:
        self._log.violated(self.now(), law, detail)


class Afterwards:
    """Laws that are checked when all is at rest."""

    def __init__(self, plan: Plan, log: Log, nodes: dict[BrokerId, Node], now_ns: int) -> None:
        self._plan, self._log, self._nodes, self._now_ns = plan, log, nodes, now_ns
        self._lives = {node.life for node in nodes.values()}
        self._accepted: dict[Name, Accepted] = {each.name: each for each in log.accepted}
        self._got: dict[str, dict[Name, None]] = defaultdict(dict)

    def check(self, publishers: Iterable[Publisher], subscribers: Iterable[Subscriber]) -> None:
        """Check all of them."""
        self._check_deliveries()
        if self._plan.kind is Kind.DISKS:  # these have more, in disk_checks.py
            return
        stable = [each for each in subscribers if each.planned.is_stable]
        if self._plan.kind is Kind.RESTARTS:
            self._check_told(stable)
            return
        planned = [each.planned for each in stable]
        dead = [broker for broker in self._plan.scot.brokers if broker not in self._nodes]
        self._check_lost([each for each in planned if each.host not in dead], dead)
        self._check_counted([each for each in planned if each.host in dead])
        for told in self._log.told:
            if told.of not in dead:
                self._violated("counted", f"{told.of} has given up {told.host}, which lives")
        longest_ns = max(publisher.longest_wait_ns for publisher in publishers)
        if dead and longest_ns > self._plan.options.give_up_ns + _WAIT_SLACK_NS:
            self._violated("nobody waits for the dead", f"{longest_ns / 1e9:.3f} s")

    def _check_deliveries(self) -> None:
        clients = {each.name: each for each in self._plan.subscribers}
        last: dict[tuple[str, str], int] = {}
        for each in self._log.delivered:
            got, client, (publisher, number) = (
                self._got[each.client],
                clients[each.client],
                each.name,
            )
            detail = f"{each.client} gets {publisher} {number} at {each.at_ns / 1e9:.6f} s"
            if each.name in got:
                self._violated("nothing twice", detail)
            elif number < last.get((each.client, publisher), -1):
                self._violated("in order", detail)
            if each.name not in self._accepted or not client.low <= each.topic <= client.high:
                self._violated("nothing unasked", detail)
            got[each.name] = None
            last[each.client, publisher] = number

    def _lacks(self, client: PlannedSubscriber) -> Iterable[Accepted]:
        for each in self._log.accepted:
            if client.low <= each.topic <= client.high and each.name not in self._got[client.name]:
                yield each

    def _check_lost(self, clients: list[PlannedSubscriber], dead: list[BrokerId]) -> None:
        for client in clients:
            for each in self._lacks(client):
                if each.host not in dead:
                    publisher, number = each.name
                    self._violated("nothing lost", f"{client.name} lacks {publisher} {number}")

    def _check_counted(self, clients: list[PlannedSubscriber]) -> None:
        missing: dict[tuple[BrokerId, BrokerId], set[Name]] = defaultdict(set)
        for client in clients:
            for each in self._lacks(client):
                missing[each.host, client.host].add(each.name)
        for (host, target), names in missing.items():
            node = self._nodes.get(host)
            if node is not None and (counted := node.channels.sender.given_up) < len(names):
                detail = f"{host} has given up {counted}, and {target} lacks {len(names)}"
                self._violated("counted", detail)

    def _check_told(self, clients: list[Subscriber]) -> None:
        """Check that clients are told of what they lack: how much it is, if that is known."""
        missing: dict[tuple[BrokerId, BrokerId], dict[Name, Accepted]] = defaultdict(dict)
        for client in clients:
            for each in self._lacks(client.planned):
                is_there = any(
                    begin <= each.at_ns and (end is None or each.at_ns < end)
                    for begin, end in client.sessions
                )
                host = client.planned.host
                if is_there and host in each.targets and not self._nobody_knows(each, host):
                    missing[host, each.host][each.name] = each
        for (host, of), lacking in missing.items():
            first_ns = min(each.at_ns for each in lacking.values())
            told = [
                each.count
                for each in self._log.told
                if (each.host, each.of) == (host, of) and each.at_ns >= first_ns
            ]
            if None not in told and sum(filter(None, told)) < len(lacking):
                first = min(lacking)
                detail = f"{host} lacks {len(lacking)} of {of} from {first} on, and tells of {told}"
                self._violated("told", detail)

    def _nobody_knows(self, lost: Accepted, target: BrokerId) -> bool:
        """Tell whether it died with its host, and that with nobody who could tell the target.

        The target knows of it only if it has heard of that life of the host, and of another since.
        """
        if lost.life in self._lives:
            return False
        is_known = any(
            (target, life, lost.host, lost.life) in self._log.begun for life in self._lives
        )
        return not is_known or not any(
            target in each.targets
            for each in self._log.accepted
            if each.host == lost.host and each.life != lost.life and each.at_ns > lost.at_ns
        )

    def _violated(self, law: str, detail: str) -> None:
        self._log.violated(self._now_ns, law, detail)


def _ranges(numbers: list[int]) -> str:
    return f"{len(numbers)} from {numbers[0]} to {numbers[-1]}"
