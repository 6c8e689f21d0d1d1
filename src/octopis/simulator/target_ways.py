"""Target routing's rule, asked for the outputs of simulated stations."""

from collections.abc import Iterable, Sequence

import msgspec

from octopis.core.routing import LinkStatus, Reason
from octopis.core.routing.algorithms import tnr
from octopis.simulator.network import Network, Station, Way

_KNOWN_MAX = 512
"""Answers that are kept for each station."""


class Fan(msgspec.Struct, frozen=True, gc=False):
    """Where the copies of one message go on from a station."""

    ways: list[Way]
    """In the order of the outputs: so are queues looked after."""
    reasons: tuple[Reason, ...]
    """Of each copy."""
    unreachable: int = 0
    """Targets that they cannot go on to."""


class TargetWays:
    """Asks the rule where copies go on from each station, by the states of its queues."""

    def __init__(
        self, network: Network, sending_ns: Sequence[int], reason: Reason | None = None
    ) -> None:
        """Take how long a copy for 0, 1, 2, ... targets is sent, and the reason of all, if any."""
        self._crossroads = [
            tnr.Crossroads(
                station.broker,
                network.scot,
                {output.target.broker: output.tracked_status for output in station.outputs},
            )
            for station in network.stations
        ]
        self._sending_ns = sending_ns
        self._reason = reason
        self._outputs = {output.tracked_status: output for output in network.outputs}
        self._known: list[dict[int, Fan]] = [{} for _ in network.stations]
        """What the rule says where all ways that it takes are open: nothing else matters then."""

    def plan(self, station: Station, targets: int, tried: int, now: int) -> Fan:
        """Return the copies, and the targets that they cannot go on to."""
        if not tried:
            known = self._known[station.index].get(targets) or self._learn(station, targets)
            if station.sender_free <= now and not station.has_slow:
                return known  # all queues are empty, and nothing is down here
            station.tell(now)
            for way, _, _, _, _ in known.ways:
                status = way.tracked_status
                status.roll(now)
                if not tnr.is_open(status):
                    break
            else:
                return known
        station.tell(now)
        return self._fan(*tnr.plan(self._crossroads[station.index], targets, tried, now))

    def _learn(self, station: Station, targets: int) -> Fan:
        here, known = self._crossroads[station.index], self._known[station.index]
        parts, _ = here.split(targets, 0)
        if len(known) >= _KNOWN_MAX:
            known.clear()
        copies = [tnr.onward(here, link, part, 0) for link, part in parts.items()]
        found = known[targets] = self._fan(copies)
        return found

    def _fan(self, copies: Iterable[tuple[LinkStatus, int, int, Reason]], lost: int = 0) -> Fan:
        outputs, sending_ns, same = self._outputs, self._sending_ns, self._reason
        ways: list[Way] = [
            (outputs[link], sending_ns[part.bit_count()], same or reason, part, tried)
            for link, part, tried, reason in copies
        ]
        ways.sort(key=_place)
        return Fan(ways, tuple([reason for _, _, reason, _, _ in ways]), lost)


def _place(way: Way) -> int:
    return way[0].index
