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

from collections.abc import Container, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from octopis.core.model import BrokerId
from octopis.core.routing.link_status import LinkStatus
from octopis.core.routing.messages import Reason
from octopis.core.topology import SCOT

_SETS_MAX = 4096
"""Sets of targets of a region whose ways are kept."""

# Members of an Enum are slow to look up.
_TARGET, _LATE, _EARLY, _WAITS = Reason.TARGET, Reason.LATE, Reason.EARLY, Reason.WAITS
_AROUND_OVERLOAD, _AROUND_FAULT = Reason.AROUND_OVERLOAD, Reason.AROUND_FAULT


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
        self._own_cluster = scot.cluster_masks[broker.cluster]
        self._elsewhere = [~mask for mask in scot.cluster_masks]

    def split(self, targets: int, tried: int) -> dict[LinkStatus, int]:
        """Return the way of each target (steps 2 and 3): targets by link, in the order of links."""
        parts: dict[LinkStatus, int] = {}
        crosses_early = False
        own_cluster = self._own_cluster
        for mask, acol in self.branches:
            part = targets & mask
            if not part:
                continue
            if part & own_cluster or tried:
                parts[acol] = part
                continue
            cluster = ((part & -part).bit_length() - 1) % self.width
            if part & self._elsewhere[cluster]:
                parts[acol] = part
            else:
                icol = self.icols[cluster]
                parts[icol] = parts.get(icol, 0) | part
                crosses_early = True
        here = targets & self.region
        if here and not crosses_early:
            parts |= self._ways_here[here]
        elif here:
            for icol, bit in self._ways_here[here].items():
                parts[icol] = parts.get(icol, 0) | bit
        return parts

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

    def tried_on(self, tried: int, *, is_fault: bool) -> int:
        """Return `tried` with this cluster; `is_fault`: the way on from here was down."""
        tried |= 1 << self.cluster
        return tried | 1 << self.cluster + self.width if is_fault else tried


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
    parts = here.split(targets, tried)
    for way in parts:
        way.roll(now_ns)
        if not is_open(way):
            break
    else:
        return TargetPlan(list(map(Onward._make, copies(here, parts, tried))), 0)
    detour = redirect(here, parts, tried, here.closed(now_ns))
    return TargetPlan(list(map(Onward._make, copies(here, parts, tried, detour))), detour.lost)


def is_open(way: LinkStatus) -> bool:
    """Tell whether a link is up and not overloaded, as far as its status was rolled."""
    return way.is_up and way.queue_length <= way.longest_uncongested


def onward(here: Crossroads, way: LinkStatus, part: int, tried: int) -> Onward:
    """Return a copy that goes its own way."""
    return Onward._make(copies(here, {way: part}, tried)[0])


class Detour(msgspec.Struct, gc=False):
    """What becomes of targets whose way is not open: they go around, wait, or cannot go on."""

    around: LinkStatus | None = None
    tried: int = 0
    """What a copy that goes around carries as tried."""

    reason: Reason = Reason.AROUND_OVERLOAD
    waiting: Sequence[LinkStatus] = ()
    lost: int = 0


NO_DETOUR = Detour()


def copies(
    here: Crossroads, parts: Mapping[LinkStatus, int], tried: int, detour: Detour = NO_DETOUR
) -> list[tuple[LinkStatus, int, int, Reason]]:
    """Return the copies, one for each link (step 5), as `Onward` has them."""
    around, beyond = detour.around, here.beyond
    found = [
        (way, part, tried, _EARLY if part & beyond else _LATE)
        if way.is_icol
        else (way, part, 0, _TARGET)
        for way, part in parts.items()
        if way is not around
    ]
    if around is not None:
        found.append((around, parts[around], detour.tried, detour.reason))
    if detour.waiting:
        return [
            (way, part, carried, _WAITS if way in detour.waiting else reason)
            for way, part, carried, reason in found
        ]
    return found


def redirect(
    here: Crossroads, parts: dict[LinkStatus, int], tried: int, closed: set[LinkStatus]
) -> Detour:
    """Find other ways where those of `parts` are `closed` (step 4), and change `parts` to them."""
    stuck = _late_instead(here, parts, closed)
    if not stuck:
        return NO_DETOUR
    around = _best(here, tried, parts, closed)
    if around is None:
        return _wait(here, parts, tried, stuck)
    anyway = parts.pop(around, 0)
    going, any_down, all_down = anyway, False, True
    for way, part in stuck:
        going |= part
        if way.is_up:
            all_down = False
        else:
            any_down = True
    parts[around] = going
    # Of no use is this cluster only to a copy of which no part had a way from here.
    tried = here.tried_on(tried, is_fault=all_down and not anyway & here.beyond)
    return Detour(around, tried, _AROUND_FAULT if any_down else _AROUND_OVERLOAD)


_Stuck = list[tuple[LinkStatus, int]]
"""Ways that are not open, each with the targets whose way it is."""


def _late_instead(
    here: Crossroads, parts: dict[LinkStatus, int], closed: set[LinkStatus]
) -> _Stuck:
    """Let branches that cannot cross early cross late; return what is left.

    Where neither is open, a branch is stuck on its aCOL as long as that is up.
    """
    stuck: _Stuck = []
    for way in [each for each in parts if each in closed]:
        part = parts.pop(way)
        if way.is_icol and part & here.beyond:
            for mask, acol in here.branches:
                branch = part & mask
                if branch and acol.is_up:
                    part ^= branch
                    if acol in closed:
                        stuck.append((acol, branch))
                    else:
                        parts[acol] = branch
        if part:
            stuck.append((way, part))
    return stuck


def _wait(here: Crossroads, parts: dict[LinkStatus, int], tried: int, stuck: _Stuck) -> Detour:
    """Let what is stuck wait on its own way; where that is down, on whatever may lead on."""
    waiting = []
    blocked = 0
    for way, part in stuck:
        if way.is_up:
            parts[way] = parts.get(way, 0) | part
            waiting.append(way)
        else:
            blocked |= part
    if not blocked:
        return Detour(waiting=waiting)
    around = _best(here, tried, parts)
    if around is None:  # back to where it was overload alone
        around = _best(here, tried >> here.width, parts)
    if around is None:
        return Detour(waiting=waiting, lost=blocked)
    parts[around] = parts.get(around, 0) | blocked
    waiting = [each for each in waiting if each is not around]
    return Detour(around, here.tried_on(tried, is_fault=True), _AROUND_FAULT, waiting)


def _best(
    here: Crossroads,
    clusters: int,
    taken: Mapping[LinkStatus, int],
    closed: Container[LinkStatus] = (),
) -> LinkStatus | None:
    """Return the iCOL to go around by, which is up and leads to none of these clusters.

    First one that gets a copy anyway, then the shortest queue, then the lowest cluster.
    """
    best, least = None, (True, inf)
    for cluster, icol in here.icols.items():
        if clusters >> cluster & 1 or not icol.is_up or icol in closed:
            continue
        load = icol not in taken, icol.queue_length
        if best is None or load < least:
            best, least = icol, load
    return best
