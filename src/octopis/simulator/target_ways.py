"""Target routing's rule, asked for the outputs of simulated stations."""

from octopis.core.routing import tnr
from octopis.core.routing.tnr import Onward
from octopis.simulator.network import Network, Output, Station


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

    def plan(
        self, station: Station, targets: int, tried: int, now: int
    ) -> tuple[list[tuple[Output, Onward]], int]:
        """Return the copies, in the order of the outputs, and the targets they cannot go on to."""
        copies, unreachable = tnr.plan(self._crossroads[station.index], targets, tried, now)
        outputs = self._outputs
        # Queues are looked after in the order of the outputs.
        return sorted(((outputs[each.link], each) for each in copies), key=_place), unreachable


def _place(copy: tuple[Output, Onward]) -> int:
    return copy[0].index
