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
the tree distance to a target; or, over an iCOL, the clusters that are left to try, or those not
known to be of no use, or else the crossings that are left: no loops, without ids.
"""

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from octopis.core.model import BrokerId
from octopis.core.routing.link_status import LinkStatus
from octopis.core.routing.messages import Reason
from octopis.core.topology import SCOT

_SETS_MAX = 4096
"""Sets of targets of a region whose ways are kept."""

_ONE_MORE = 1 << 60
"""What one more copy counts, where a way around is chosen: more than any queue."""

# Members of an Enum are slow to look up.
_TARGET, _LATE, _EARLY, _WAITS = Reason.TARGET, Reason.LATE, Reason.EARLY, Reason.WAITS
_AROUND_OVERLOAD, _AROUND_FAULT = Reason.AROUND_OVERLOAD, Reason.AROUND_FAULT


Parts = dict[LinkStatus, int]
"""Targets by the link that is their way."""

Detours = dict[LinkStatus, tuple[int, Reason]]
"""Links whose copies do not just go their own way: what they carry as tried, and why."""


class Crossroads:
    """A broker's place in the overlay as masks over all brokers, each with the link it stands for.

    `links` are the states of the broker's links, by the neighbour at their other end.
    """

    __slots__ = (
        "_elsewhere",
        "_own_cluster",
        "_ways_here",
        "beyond",
        "branches",
        "icols",
        "links",
        "others",
        "own_bit",
        "region",
        "tried_here",
        "tried_in_vain",
        "width",
    )

    def __init__(self, broker: BrokerId, scot: SCOT, links: Mapping[BrokerId, LinkStatus]) -> None:
        self.own_bit = scot.bit(broker)
        self.others = (1 << len(scot.brokers)) - 1 & ~self.own_bit
        self.region = scot.region_masks[broker.region] & ~self.own_bit
        self.beyond = ~scot.region_masks[broker.region]
        self.branches = [
            (scot.branch_masks[broker.region, neighbour.region], links[neighbour])
            for neighbour in scot.primary_neighbours(broker)
        ]
        self.icols = {each.cluster: links[each] for each in scot.secondary_neighbours(broker)}
        self.links = [*(acol for _, acol in self.branches), *self.icols.values()]
        self._ways_here = WaysHere(
            (scot.bit(each), links[each]) for each in scot.secondary_neighbours(broker)
        )
        self.width = len(scot.clusters)
        self.tried_here = 1 << broker.cluster
        self.tried_in_vain = self.tried_here | self.tried_here << self.width
        """What a copy has tried that goes around from here; and where its way was down."""

        self._own_cluster = scot.cluster_masks[broker.cluster]
        self._elsewhere = [~mask for mask in scot.cluster_masks]

    def split(
        self, targets: int, tried: int, closed: Container[LinkStatus] = frozenset()
    ) -> tuple[Parts, Parts]:
        """Return the way of each target (steps 2 and 3): targets by link, in the order of links.

        First those whose way is open, then those that are stuck on a way that is `closed`. A branch
        that cannot cross early crosses late; where neither is open, it is stuck on its aCOL as long
        as that is up.
        """
        parts: Parts = {}
        stuck: Parts = {}
        crosses_early = False
        own_cluster = self._own_cluster
        for mask, acol in self.branches:
            part = targets & mask
            if not part:
                continue
            if not (part & own_cluster or tried):
                cluster = ((part & -part).bit_length() - 1) % self.width
                if not part & self._elsewhere[cluster]:
                    icol = self.icols[cluster]
                    if icol not in closed:
                        parts[icol] = parts.get(icol, 0) | part
                        crosses_early = True
                        continue
                    if not acol.is_up:
                        stuck[icol] = stuck.get(icol, 0) | part
                        continue
            (stuck if acol in closed else parts)[acol] = part
        here = targets & self.region
        if here and not closed and not crosses_early:
            parts |= self._ways_here[here]
        elif here:
            for icol, bit in self._ways_here[here].items():
                found = stuck if icol in closed else parts
                found[icol] = found.get(icol, 0) | bit
        return parts, stuck

    def closed(self, now_ns: int) -> set[LinkStatus]:
        """Return the links that are not open now."""
        found = set()
        for link in self.links:
            link.roll(now_ns)
            if not is_open(link):
                found.add(link)
        return found

    def has_room_for(self, count: int) -> bool:
        """Tell whether all links stay open, whatever of so many messages goes over them."""
        return all(link.queue_length + count <= link.longest_uncongested for link in self.links)


class WaysHere(dict[int, dict[LinkStatus, int]]):
    """For each set of targets of a region the iCOLs to them: the same sets come all the time."""

    def __init__(self, icols: Iterable[tuple[int, LinkStatus]]) -> None:
        self._icols = list(icols)

    def __missing__(self, targets: int) -> dict[LinkStatus, int]:
        if len(self) >= _SETS_MAX:
            self.clear()
        found = self[targets] = {icol: bit for bit, icol in self._icols if targets & bit}
        return found


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
    closed = here.closed(now_ns)
    parts, stuck = here.split(targets, tried, closed)
    detours, lost = redirect(here, parts, stuck, tried, closed) if stuck else ({}, 0)
    copies = [
        Onward(way, part, *detours[way]) if way in detours else onward(here, way, part, tried)
        for way, part in parts.items()
    ]
    return TargetPlan(copies, lost)


def is_open(way: LinkStatus) -> bool:
    """Tell whether a link is up and not overloaded, as far as its status was rolled."""
    return way.is_up and way.queue_length <= way.longest_uncongested


def onward(here: Crossroads, way: LinkStatus, part: int, tried: int) -> Onward:
    """Return a copy that goes its own way."""
    return Onward(way, part, tried_over(way, tried), own_reasons(here, way, [part])[0])


def tried_over(way: LinkStatus, tried: int) -> int:
    """Return what a copy that goes its own way carries as tried (step 5)."""
    return tried if way.is_icol else 0


def own_reasons(
    here: Crossroads, way: LinkStatus, parts: Iterable[int], count: int = 1
) -> list[Reason]:
    """Return why so many copies, with these targets, take this link, where it is their own way."""
    if not way.is_icol:
        return [_TARGET] * count
    beyond = here.beyond
    return [_EARLY if part & beyond else _LATE for part in parts]


def redirect(
    here: Crossroads, parts: Parts, stuck: Parts, tried: int, closed: Container[LinkStatus]
) -> tuple[Detours, int]:
    """Find other ways for what is stuck (step 4), and add it to `parts`; return what cannot go on.

    And with it the links whose copies do not just go their own way: what they carry, and why.
    """
    around = _best(here, tried, parts, closed)
    if around is None:
        return _wait(here, parts, stuck, tried)
    anyway = parts.pop(around, 0)
    together, are_up = anyway, True
    for way, part in stuck.items():
        together |= part
        are_up = are_up and way.is_up
    parts[around] = together
    if are_up:
        return {around: (tried | here.tried_here, _AROUND_OVERLOAD)}, 0
    # Of no use is this cluster only to a copy of which no part had a way from here.
    is_of_use = anyway & here.beyond or any(way.is_up for way in stuck)
    tried |= here.tried_here if is_of_use else here.tried_in_vain
    return {around: (tried, _AROUND_FAULT)}, 0


def _wait(here: Crossroads, parts: Parts, stuck: Parts, tried: int) -> tuple[Detours, int]:
    """Let what is stuck wait on its own way; where that is down, on whatever may lead on."""
    detours: Detours = {}
    blocked = 0
    for way, part in stuck.items():
        if way.is_up:
            parts[way] = part
            detours[way] = tried_over(way, tried), _WAITS
        else:
            blocked |= part
    if not blocked:
        return detours, 0
    around = _best(here, tried, parts)
    if around is None:  # back to where it was overload alone
        around = _best(here, tried >> here.width, parts)
    if around is None:
        return detours, blocked
    parts[around] = parts.pop(around, 0) | blocked
    detours[around] = tried | here.tried_in_vain, _AROUND_FAULT
    return detours, 0


def _best(
    here: Crossroads,
    clusters: int,
    taken: Container[LinkStatus],
    closed: Container[LinkStatus] = (),
) -> LinkStatus | None:
    """Return the iCOL to go around by, which is up and leads to none of these clusters.

    First one that gets a copy anyway, then the shortest queue, then the lowest cluster.
    """
    best, least = None, 0
    for cluster, icol in here.icols.items():
        if icol in closed or not icol.is_up or clusters >> cluster & 1:
            continue
        load = icol.queue_length if icol in taken else icol.queue_length + _ONE_MORE
        if best is None or load < least:
            best, least = icol, load
    return best
