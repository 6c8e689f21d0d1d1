"""How subscriptions spread under target routing: by its rule, numbered by their host.

A change of a host's subscriptions is a message whose targets are all other brokers. It goes over
shortest paths, and around what is dead or overloaded. Its host, the only writer, numbers it.

Changes may overtake each other or be lost with a link. Whoever has heard more than a neighbour says
it knows sends what is newer: the changes in between where they are remembered, else all that the
host has (HostTable). Neighbours compare when their link comes up, and now and then what has changed
since (`compare`). So a broker catches up from any neighbour, whoever else is dead.

A host that was restarted begins with nothing, and must not number as before. A generation is a
count and, below it, the `life` of the broker, which differs from start to start: two lives never
write the same version. Whoever hears of itself what it has not written begins a generation above.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from octopis.core.model import BrokerId
from octopis.core.routing.algorithms.hosts import Host, Hosts, Version
from octopis.core.routing.algorithms.tnr import Crossroads, plan
from octopis.core.routing.link_status import LinkStatusTable
from octopis.core.routing.messages import (
    HeardVersions,
    HostChange,
    HostTable,
    Message,
    Reason,
    Subscription,
)
from octopis.core.routing.outbox import Outbox
from octopis.core.routing.table import RoutingTable

LIFE_BITS = 32
_REMEMBERED_MAX = 256
"""Changes of a host that can be told again one by one; further back, all that it has is told."""

EARLY_MAX = 256
"""Changes of a host that wait for one before them; what is dropped comes again by comparing."""


def next_generation(generation: int, life: int) -> int:
    """Return the generation of this life that follows any of the same count."""
    return (generation >> LIFE_BITS) + 1 << LIFE_BITS | life


class Spreading:
    """Spreads the changes of local clients, takes in those of others, and lets others catch up."""

    speaks: tuple[type, ...] = (HostChange, HostTable, HeardVersions)

    def __init__(  # noqa: PLR0913, PLR0917 - one call, in strategy.py
        self,
        here: Crossroads,
        broker: BrokerId,
        links: LinkStatusTable,
        table: RoutingTable,
        outbox: Outbox,
        moved_away: Callable[[str], None],
        unheard: set[BrokerId],
        life: int,
    ) -> None:
        assert 0 <= life < 1 << LIFE_BITS, f"a life has {LIFE_BITS} bits, not {life}"
        self._here = here
        self._broker = broker
        self._links = links
        self._outbox = outbox
        self._release = moved_away
        self._life = life
        self._hosts = Hosts(broker, table, outbox, lambda host: host, self._moved_away)
        self._own = self._hosts.own
        self._remembered: dict[BrokerId, deque[HostChange]] = {}
        self._early: dict[BrokerId, dict[Version, HostChange]] = {}
        self._present: dict[tuple[BrokerId, BrokerId], set[str]] = {}
        """What is in the parts so far of the tables that neighbours are sending."""

        self._silent = unheard
        self._heard_complete = not unheard
        self._awaited: dict[BrokerId, Version] = {}
        self._greeted = links.up
        """Neighbours that have said, since their link came up, how far they have heard."""

        self._untold: dict[BrokerId, set[BrokerId]] = {link: set() for link in links}
        """For each neighbour the hosts whose changes were not compared with it."""

        self.on_life: Callable[[BrokerId, int, int], None] = lambda _host, _life, _now_ns: None
        """Is told which life of a host has written what is known of it, when that changes."""

    @property
    def unheard(self) -> set[BrokerId]:
        """Hosts known to have changed more; and silent neighbours, until one has told of all."""
        missing = {name for name, least in self._awaited.items() if self._hosts[name].heard < least}
        if self._heard_complete and not missing:
            self._awaited.clear()  # it has caught up, and need not be asked again
        return missing if self._heard_complete else missing | self._silent

    # What a broker remembers of its earlier lives

    def restore(
        self,
        own: Sequence[Subscription],
        others: Mapping[BrokerId, tuple[int, Sequence[Subscription]]],
        now_ns: int,
    ) -> None:
        """Begin with own durable subscriptions, and with those that were known of other hosts.

        No link is up yet, and nobody is told of changes one by one: then there were a moment in
        which others know only a part. Of other hosts the generation is known, and that there is
        more: so a neighbour that knows of them tells all.
        """
        if own:
            self._own.generation, self._own.sequence = next_generation(0, self._life), 1
        for subscription in own:
            self._hosts.add(self._own, subscription, now_ns)
        for name, (generation, subscriptions) in others.items():
            host = self._hosts[name]
            host.generation = generation  # which life that was, channels remember themselves
            for subscription in subscriptions:
                self._hosts.add(host, subscription, now_ns)

    def watch_durables(self, told: Callable[[Host], None]) -> None:
        """Have `told` hear of hosts whose durable subscriptions have changed."""
        self._hosts.on_durable = told

    # Changes of local clients

    def subscribe(self, subscription: Subscription, now_ns: int) -> None:
        """Take in a subscription of a local client."""
        self._change((subscription,), (), now_ns)

    def unsubscribe(self, subscription: str, now_ns: int) -> None:
        """Take back a subscription of a local client."""
        self._change((), (subscription,), now_ns)

    def _change(
        self, added: tuple[Subscription, ...], removed: tuple[str, ...], now_ns: int
    ) -> None:
        if not self._own.generation:
            self._own.generation = next_generation(0, self._life)
        generation, after = self._own.heard
        change = HostChange(
            self._broker, generation, after, after + 1, added, removed, self._here.others
        )
        self._apply(self._own, change, now_ns)
        self._note(self._own, None)
        self.pass_on(change, now_ns)

    def _moved_away(self, identity: str, now_ns: int) -> None:
        self._release(identity)
        self._change((), (identity,), now_ns)

    # What comes

    def receive(self, sender: BrokerId, message: Message, now_ns: int) -> None:
        """Take in what a neighbour says about subscriptions."""
        if isinstance(message, HostChange):
            self._take_in(sender, message, now_ns)
            self.pass_on(message, now_ns)
        elif isinstance(message, HostTable):
            self._take_part(sender, message, now_ns)
        else:
            assert isinstance(message, HeardVersions), f"{message} is not of this protocol"
            self._compare_with(sender, message, now_ns)

    def pass_on(self, change: HostChange, now_ns: int) -> None:
        """Send copies of a change to the brokers beyond this one, by the rule."""
        targets = change.targets & self._here.others
        if not targets:
            return
        # Who is dead catches up when it is back: nothing is lost here.
        for way, part, tried, _ in plan(self._here, targets, change.tried, now_ns).copies:
            copy = _copy(change, part, tried)
            self._outbox.send(way.link, copy, Reason.SUBSCRIPTION, now_ns)

    def _take_in(self, sender: BrokerId, change: HostChange, now_ns: int) -> None:
        host = self._hosts[change.host]
        if (change.generation, change.sequence) <= host.heard:
            self._outbox.counters.duplicates += 1
        elif host is self._own:
            self._renew(change.generation, now_ns)  # it is from before a restart
        elif self._follows(host, change):
            self._apply(host, change, now_ns)
            # Whoever sent the change knows it, but maybe not what came early and follows it.
            knowing = None if self._take_early(host, now_ns) else sender
            self._note(host, knowing)
            if not change.targets:  # caught up; others may have missed it, too
                self._tell([host], self._links.up - {knowing}, now_ns)
        else:
            early = self._early.setdefault(host.name, {})
            early[change.generation, change.after] = change
            if len(early) > EARLY_MAX:
                del early[next(iter(early))]
            self._note(host, sender)

    def _follows(self, host: Host, change: HostChange) -> bool:
        """Tell whether a change goes on from what is known, or begins a generation."""
        if change.generation == host.generation:
            return change.after <= host.sequence
        return change.generation > host.generation and change.after == 0

    def _take_early(self, host: Host, now_ns: int) -> bool:
        """Take in changes that have come before those that they follow; tell if there are any."""
        before = host.heard
        early = self._early.get(host.name)
        while early:
            found = next((each for each in early.values() if self._follows(host, each)), None)
            if found is None:
                for key in [each for each in early if each[0] < host.generation]:
                    del early[key]
                break
            del early[found.generation, found.after]
            if (found.generation, found.sequence) > host.heard:
                self._apply(host, found, now_ns)
        if not early:
            self._early.pop(host.name, None)
        return host.heard > before

    def _apply(self, host: Host, change: HostChange, now_ns: int) -> None:
        remembered = self._remembered.setdefault(host.name, deque(maxlen=_REMEMBERED_MAX))
        if change.generation != host.generation:
            remembered.clear()
            for gone in list(host.subscriptions):
                self._hosts.remove(host, gone, now_ns)
        self._come_to(host, change.generation, change.sequence, now_ns)
        remembered.append(change)
        for gone in change.removed:
            self._hosts.remove(host, gone, now_ns)
        for subscription in change.added:
            self._hosts.add(host, subscription, now_ns)

    def _come_to(self, host: Host, generation: int, sequence: int, now_ns: int) -> None:
        is_another = generation != host.generation
        host.generation, host.sequence = generation, sequence
        if is_another and host is not self._own:
            self.on_life(host.name, generation & (1 << LIFE_BITS) - 1, now_ns)

    def _take_part(self, sender: BrokerId, part: HostTable, now_ns: int) -> None:
        """Take in a part of a host's table; after the last, what was in none is gone."""
        host = self._hosts[part.host]
        version = part.generation, part.sequence
        present = self._present.setdefault((sender, part.host), set())
        present.update(each.id for each in part.subscriptions)
        if part.last:
            del self._present[sender, part.host]
        if version <= host.heard:
            return
        if host is self._own:
            if part.last:
                self._renew(part.generation, now_ns)
            return
        if part.last:
            self._come_to(host, *version, now_ns)
            self._remembered.pop(host.name, None)
            for gone in [each for each in host.subscriptions if each not in present]:
                self._hosts.remove(host, gone, now_ns)
        for subscription in part.subscriptions:
            self._hosts.add(host, subscription, now_ns)
        if part.last:
            knowing = None if self._take_early(host, now_ns) else sender
            self._tell([host], self._links.up - {knowing}, now_ns)

    # Comparing with neighbours

    def link_up(self, neighbour: BrokerId, now_ns: int) -> None:
        """Tell a neighbour how far this broker has heard of every host."""
        for key in [each for each in self._present if each[0] == neighbour]:
            del self._present[key]  # what it had begun to tell ended with the link
        self._greeted.discard(neighbour)
        self._untold[neighbour].clear()
        self._tell(self._hosts, [neighbour], now_ns)

    def compare(self, now_ns: int) -> None:
        """Tell neighbours how far this broker has heard of hosts that changed since the last time.

        They say if they have heard more, or less.
        """
        for neighbour, untold in self._untold.items():
            if untold and self._links[neighbour].is_up:
                self._tell([self._hosts[name] for name in sorted(untold)], [neighbour], now_ns)
                untold.clear()

    def _note(self, host: Host, sender: BrokerId | None) -> None:
        """Let the next comparing be about a host; whoever sent the change knows it."""
        for neighbour, untold in self._untold.items():
            if neighbour != sender:
                untold.add(host.name)

    def _tell(self, hosts: Iterable[Host], neighbours: Iterable[BrokerId], now_ns: int) -> None:
        known = {each.name: each.heard for each in hosts}
        versions = HeardVersions(known, not self.unheard)
        for neighbour in sorted(neighbours):
            self._outbox.send(neighbour, versions, Reason.SYNC, now_ns)

    def _compare_with(self, sender: BrokerId, theirs: HeardVersions, now_ns: int) -> None:
        is_greeting = sender not in self._greeted
        self._greeted.add(sender)
        is_renewed = theirs.known.get(self._broker, (0, 0)) > self._own.heard
        if is_renewed:
            self._renew(theirs.known[self._broker][0], now_ns)
        hosts = self._hosts if is_greeting else [self._hosts[name] for name in theirs.known]
        behind = []
        for host in hosts:
            version = theirs.known.get(host.name, (0, 0))
            if version > host.heard:
                behind.append(host)
            elif version == host.heard:
                self._untold[sender].discard(host.name)
            elif not (is_renewed and host is self._own):  # of that it was told, and asks
                self._bring_up(sender, host, version, now_ns)
        if behind and not is_greeting:  # in a greeting both say all, and need not ask
            self._tell(behind, [sender], now_ns)
        if is_greeting:
            self._hear_first(sender, theirs)

    def _hear_first(self, sender: BrokerId, theirs: HeardVersions) -> None:
        if not self._heard_complete:
            self._silent.discard(sender)
            for name, version in theirs.known.items():
                if name != self._broker:
                    self._awaited[name] = max(version, self._awaited.get(name, (0, 0)))
            self._heard_complete = theirs.is_complete or not self._silent

    def _bring_up(self, neighbour: BrokerId, host: Host, version: Version, now_ns: int) -> None:
        """Send a neighbour what it has not heard of a host."""
        missed = self._since(host, *version)
        if missed is None:
            whole = HostTable(host.name, *host.heard, tuple(host.subscriptions.values()))
            self._outbox.send(neighbour, whole, Reason.SYNC, now_ns)
            return
        for change in missed:
            self._outbox.send(neighbour, _copy(change, 0, 0), Reason.SYNC, now_ns)

    def _since(self, host: Host, generation: int, sequence: int) -> list[HostChange] | None:
        """Return the changes after a version, or None where they are not remembered."""
        if generation != host.generation:
            return None
        found = [c for c in self._remembered.get(host.name, ()) if c.sequence > sequence]
        if not found or found[0].after > sequence:
            return None
        return found

    def _renew(self, generation: int, now_ns: int) -> None:
        """Begin a generation after `generation`, and let neighbours know."""
        newest = max(generation, self._own.generation)
        self._own.generation = next_generation(newest, self._life)
        self._remembered.pop(self._broker, None)
        self._tell([self._own], self._links.up, now_ns)

    # Marks

    def ways(self, host: BrokerId, sender: BrokerId | None) -> list[BrokerId]:  # noqa: ARG002
        """Return the links that a mark goes on by: all, so that no broken one holds it up."""
        return [link for link in self._links if self._links[link].is_up and link != sender]

    @property
    def version(self) -> Version:
        """How the own changes so far are numbered."""
        return self._own.heard

    def knows(self, host: BrokerId, version: Version) -> bool:
        """Tell whether the changes of `host` up to a version have been heard."""
        return self._hosts[host].heard >= version

    def heard_of(self, host: BrokerId) -> Version:
        """Return how far the changes of `host` have been heard."""
        known = self._hosts.get(host)
        return (0, 0) if known is None else known.heard


def _copy(change: HostChange, targets: int, tried: int) -> HostChange:
    return HostChange(
        change.host,
        change.generation,
        change.after,
        change.sequence,
        change.added,
        change.removed,
        targets,
        tried,
    )
