"""Target routing's rule, asked for the outputs of simulated stations."""

from octopis.core.routing import tnr
from octopis.core.routing.tnr import Onward
from octopis.simulator.network import Network, Output, Station

_KNOWN_MAX = 512
"""Answers that are kept for each station; the sets of targets at the edge repeat a lot."""

Ways = list[tuple[Output, Onward]]
"""Copies in the order of the outputs."""


class TargetWays:
    """Asks the rule where copies go on from each station, by the states of its queues."""

    def __init__(self, network: Network) -> None:
        self._crossroads = [
            tnr.Crossroads(
                station.broker,
                network.scot,
                {output.target.broker: output.tracked_status for output in station.outputs},
            )
            for station in network.stations
        ]
        self._outputs = {output.tracked_status: output for output in network.outputs}
        self._known: list[dict[int, Ways]] = [{} for _ in network.stations]
        """What the rule says where all ways that it takes are open: nothing else matters then."""

    def plan(self, station: Station, targets: int, tried: int, now: int) -> tuple[Ways, int]:
        """Return the copies, and the targets that they cannot go on to."""
        if not tried:
            known = self._known[station.index].get(targets)
            if known is None:
                known = self._learn(station, targets)
            for way, copy in known:
                if way.free_at > now:  # else its queue is empty, and nothing is down here
                    way.tell(now)
                    copy.link.roll(now)
                    if not tnr.is_open(copy.link):
                        break
            else:
                return known, 0
        for way in station.outputs:
            way.tell(now)
        planned, unreachable = tnr.plan(self._crossroads[station.index], targets, tried, now)
        return self._in_order(planned), unreachable

    def _learn(self, station: Station, targets: int) -> Ways:
        here, known = self._crossroads[station.index], self._known[station.index]
        parts, _ = here.split(targets, 0)
        if len(known) >= _KNOWN_MAX:
            known.clear()
        copies = [tnr.onward(here, link, part, 0) for link, part in parts.items()]
        found = known[targets] = self._in_order(copies)
        return found

    def _in_order(self, copies: list[Onward]) -> Ways:
        # Queues are looked after in the order of the outputs.
        outputs = self._outputs
        return sorted([(outputs[copy.link], copy) for copy in copies], key=_place)


def _place(copy: tuple[Output, Onward]) -> int:
    return copy[0].index
