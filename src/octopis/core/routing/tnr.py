"""Target routing (TNR): match once, carry the targets, and let structure do the rest. Ours.

The publisher's host matches and knows the targets: the brokers that host a matching subscription.
A copy carries them as bits, and with them `tried`: the clusters from which it was sent around in
this region. On the way nobody looks at content or tables. At B(r, c):

    1   where this broker is a target: deliver to local clients, and clear its bit
    2   the targets of this region, and a branch of targets for each neighbouring region
    3   a target of this region: over the iCOL to it (it crosses late). A branch: over its aCOL; but
        where all of it lies in one other cluster and nothing was tried here, over the iCOL to that
        cluster (it crosses early, once)
    4   what has no open way goes around: together, over one open iCOL to a cluster that was not
        tried. Where there is none it waits on its own way; where that is down, it goes around over
        an iCOL that is up, and then back to a cluster that it left for overload alone, to wait
        there; else it cannot go on
    5   one copy for each link. Over an aCOL `tried` is empty; over an iCOL it stays, and gets c
        where a part of the copy goes around

A way is open if its link is up and not overloaded (Eq. 3). A branch whose early crossing is not
open takes its aCOL where that is: it is as short, and nothing has to go around.

Which of the tried clusters were left because the way was down stands in `tried`, too, above the
bits of all clusters. Without it, a copy that went around an overloaded link and came to nothing but
dead brokers could not go back to where it has only to wait.

Copies of one notification have disjoint targets, so nobody is served twice. With every hop falls
the tree distance to a target; or, over an iCOL, the clusters that are not tried, or those not known
to be of no use, or else the crossings that are left: no loops, without ids.
"""

import sys
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from octopis.core.model import BrokerId
from octopis.core.routing.link_status import LinkStatus
from octopis.core.routing.messages import NO_CLUSTERS, NotificationMessage, Reason
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.table import RoutingTable
from octopis.core.topology import SCOT


class Crossroads:
    """A broker's place in the overlay as masks over all brokers, each with the link it stands for.

    `links` are the states of the broker's links, by the neighbour at their other end.
    """

    __slots__ = (
        "_elsewhere",
        "_own_cluster",
        "_targets_here",
        "branches",
        "cluster",
        "icols",
        "links",
        "others",
        "own_bit",
        "region",
        "width",
    )

    def __init__(self, broker: BrokerId, scot: SCOT, links: Mapping[BrokerId, LinkStatus]) -> None:
        self.cluster = broker.cluster
        self.own_bit = scot.bit(broker)
        self.others = (1 << len(scot.brokers)) - 1 & ~self.own_bit
        self.region = scot.region_masks[broker.region] & ~self.own_bit
        self.branches = [
            (scot.branch_masks[broker.region, neighbour.region], links[neighbour])
            for neighbour in scot.primary_neighbours(broker)
        ]
        self.icols = {each.cluster: links[each] for each in scot.secondary_neighbours(broker)}
        self.links = [*(acol for _, acol in self.branches), *self.icols.values()]
        self._targets_here = [
            (scot.bit(each), links[each]) for each in scot.secondary_neighbours(broker)
        ]
        self.width = len(scot.clusters)
        self._own_cluster = scot.cluster_masks[broker.cluster]
        self._elsewhere = [~mask for mask in scot.cluster_masks]

    def split(self, targets: int, tried: int) -> dict[LinkStatus, int]:
        """Return the way of each target (steps 2 and 3): targets by link, in the order of links."""
        parts: dict[LinkStatus, int] = {}
        for mask, acol in self.branches:
            part = targets & mask
            if not part:
                continue
            if not part & self._own_cluster and not tried:
                cluster = ((part & -part).bit_length() - 1) % self.width
                if not part & self._elsewhere[cluster]:
                    icol = self.icols[cluster]
                    parts[icol] = parts.get(icol, 0) | part
                    continue
            parts[acol] = part
        if targets & self.region:
            for bit, icol in self._targets_here:
                if targets & bit:
                    parts[icol] = parts.get(icol, 0) | bit
        return parts

    def icols_outside(self, clusters: int) -> list[LinkStatus]:
        """Return the iCOLs that are up and lead to none of these clusters, lowest first."""
        return [icol for k, icol in self.icols.items() if not clusters >> k & 1 and icol.is_up]

    def tried_on(self, tried: int, *, is_fault: bool) -> int:
        """Return `tried` with this cluster; `is_fault`: the way on from here was down."""
        tried |= 1 << self.cluster
        return tried | 1 << self.cluster + self.width if is_fault else tried


class Onward(NamedTuple):
    """A copy: the link it takes, the targets and the tried clusters it carries, and why."""

    link: LinkStatus
    targets: int
    tried: int
    reason: Reason


class TargetPlan(NamedTuple):
    """What becomes of one notification: its copies, and the targets that it cannot go on to."""

    copies: list[Onward]
    unreachable: int


def plan(here: Crossroads, targets: int, tried: int, now_ns: int) -> TargetPlan:
    """Decide where a copy with these targets goes on from here; its own bit is cleared already."""
    parts = here.split(targets, tried)
    closed = []
    for way in parts:
        way.roll(now_ns)
        if not is_open(way):
            closed.append(way)
    if not closed:
        return TargetPlan([onward(here, way, part, tried) for way, part in parts.items()], 0)
    for way in here.links:
        way.roll(now_ns)
    stuck = _late_instead(here, parts, closed)
    if not stuck:
        return TargetPlan([onward(here, way, part, tried) for way, part in parts.items()], 0)
    way_around = _best([i for i in here.icols_outside(tried) if is_open(i)], parts)
    if way_around is not None:
        return _around(here, parts, tried, way_around, stuck)
    return _wait(here, parts, tried, stuck)


def is_open(way: LinkStatus) -> bool:
    """Tell whether a link is up and not overloaded, as far as its status was rolled."""
    return way.is_up and way.queue_length <= way.longest_uncongested


def onward(here: Crossroads, way: LinkStatus, part: int, tried: int) -> Onward:
    """Return a copy that goes its own way."""
    if not way.is_icol:
        return Onward(way, part, 0, Reason.TARGET)
    return Onward(way, part, tried, Reason.EARLY if part & ~here.region else Reason.LATE)


_Stuck = list[tuple[LinkStatus, int]]
"""Ways that are not open, each with the targets whose way it is."""


def _late_instead(
    here: Crossroads, parts: dict[LinkStatus, int], closed: list[LinkStatus]
) -> _Stuck:
    """Let branches that cannot cross early cross late; return what is left.

    Where neither is open, a branch is stuck on its aCOL as long as that is up.
    """
    stuck: _Stuck = []
    for way in closed:
        part = parts.pop(way)
        for mask, acol in here.branches:
            branch = part & mask
            if branch and acol is not way and acol.is_up:
                part ^= branch
                if is_open(acol):
                    parts[acol] = parts.get(acol, 0) | branch
                else:
                    stuck.append((acol, branch))
        if part:
            stuck.append((way, part))
    return stuck


def _around(
    here: Crossroads,
    parts: dict[LinkStatus, int],
    tried: int,
    way_around: LinkStatus,
    stuck: _Stuck,
) -> TargetPlan:
    """Let all that is stuck go around over one open iCOL."""
    anyway = parts.pop(way_around, 0)
    copies = [onward(here, way, part, tried) for way, part in parts.items()]
    around = anyway
    for _, part in stuck:
        around |= part
    downs = [not way.is_up for way, _ in stuck]
    # Of no use is this cluster only to a copy of which no part had a way from here.
    tried = here.tried_on(tried, is_fault=all(downs) and not anyway & ~here.region)
    reason = Reason.AROUND_FAULT if any(downs) else Reason.AROUND_OVERLOAD
    return TargetPlan([*copies, Onward(way_around, around, tried, reason)], 0)


def _wait(here: Crossroads, parts: dict[LinkStatus, int], tried: int, stuck: _Stuck) -> TargetPlan:
    """Let what is stuck wait on its own way; where that is down, on whatever may lead on."""
    copies = {way: onward(here, way, part, tried) for way, part in parts.items()}
    blocked = 0
    for way, part in stuck:
        if way.is_up:
            before = copies[way].targets if way in copies else 0
            copies[way] = Onward(way, before | part, tried if way.is_icol else 0, Reason.WAITS)
        else:
            blocked |= part
    if not blocked:
        return TargetPlan(list(copies.values()), 0)
    way_around = _best(here.icols_outside(tried), copies)
    if way_around is None:  # back to where it was overload alone
        way_around = _best(here.icols_outside(tried >> here.width), copies)
    if way_around is None:
        return TargetPlan(list(copies.values()), blocked)
    anyway = copies[way_around].targets if way_around in copies else 0
    tried = here.tried_on(tried, is_fault=True)
    copies[way_around] = Onward(way_around, anyway | blocked, tried, Reason.AROUND_FAULT)
    return TargetPlan(list(copies.values()), 0)


def _best(icols: list[LinkStatus], taken: Mapping[LinkStatus, object]) -> LinkStatus | None:
    """Return the iCOL to go around over: one that gets a copy anyway, then the shortest queue."""
    return min(
        icols,
        key=lambda icol: (icol not in taken, icol.queue_length, icol.link.cluster),
        default=None,
    )


class TargetRouting:
    """Matches at the publisher's host and at the targets; on the way the rule alone decides."""

    def __init__(
        self, here: Crossroads, table: RoutingTable, outbox: Outbox, clients: LocalClients
    ) -> None:
        self._here = here
        self._table = table
        self._outbox = outbox
        self._clients = clients

    @property
    def batch_max(self) -> int:
        """A batch is on its queues before any of it leaves: a larger one would look congested."""
        room = min((status.congestion_threshold for status in self._here.links), default=inf)
        return max(1, int(min(room, sys.maxsize)))

    def route(
        self, batch: Sequence[NotificationMessage], sender: BrokerId | None, now_ns: int
    ) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        own_bit = self._here.own_bit
        if sender is None:
            attributes = [message.notification.attributes for message in batch]
            batch = [
                NotificationMessage(message.notification, NO_CLUSTERS, sum(hosts))
                for message, hosts in zip(batch, self._table.destinations(attributes), strict=True)
            ]
            arrived: Sequence[NotificationMessage] = batch
        else:
            arrived = [message for message in batch if message.targets & own_bit]
            attributes = [message.notification.attributes for message in arrived]
        if arrived:
            self._clients.deliver(arrived, self._table.local_matches(attributes))
        self.pass_on(batch, now_ns)

    def pass_on(self, batch: Sequence[NotificationMessage], now_ns: int) -> None:
        """Send copies to the targets beyond this broker."""
        if self._all_have_room(len(batch), now_ns):
            self._pass_on_openly(batch, now_ns)
            return
        counters, others = self._outbox.counters, self._here.others
        for message in batch:
            targets = message.targets & others
            copies, unreachable = plan(self._here, targets, message.tried, now_ns)
            counters.lost_without_route += unreachable.bit_count()
            for way, part, tried, reason in copies:
                copy = NotificationMessage(message.notification, NO_CLUSTERS, part, tried)
                counters.count_case(reason.value)
                self._outbox.send(way.link, copy, reason, now_ns)

    def _all_have_room(self, count: int, now_ns: int) -> bool:
        """Tell whether every way is open, and stays so whatever of a batch goes over it."""
        for status in self._here.links:
            status.roll(now_ns)
            if not status.is_up or status.queue_length + count > status.longest_uncongested:
                return False
        return True

    def _pass_on_openly(self, batch: Sequence[NotificationMessage], now_ns: int) -> None:
        """Send copies where nothing has to go around: as planned, and all of a link together."""
        here = self._here
        split, others = here.split, here.others
        copies: dict[LinkStatus, tuple[list[NotificationMessage], list[Reason]]] = {
            link: ([], []) for link in here.links
        }
        for message in batch:
            tried = message.tried
            for way, part in split(message.targets & others, tried).items():
                _, _, tried_on, reason = onward(here, way, part, tried)
                messages, reasons = copies[way]
                messages.append(
                    NotificationMessage(message.notification, NO_CLUSTERS, part, tried_on)
                )
                reasons.append(reason)
        for way, (messages, reasons) in copies.items():
            if messages:
                for reason in set(reasons):
                    self._outbox.counters.count_case(reason.value, reasons.count(reason))
                self._outbox.send_all(way.link, messages, reasons, now_ns)
