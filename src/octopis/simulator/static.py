"""SNR in the simulator: along the shortest subscription trees."""

from octopis.core.routing import Reason
from octopis.simulator.audience import Copy, Flight
from octopis.simulator.network import Output, Station
from octopis.simulator.notifying import Notifying


class StaticNotifying(Notifying):
    """One copy for every output with a target behind it; iCOLs at the publisher's host only."""

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Act on a notification that came over `output`, or from a local publisher."""
        flight: Flight = copy.subject
        self._take_in(flight, station, copy.hops, now)
        targets = flight.targets
        routes = station.routes if output is None else output.onward
        ways = [way for behind, way in routes if targets & behind]
        if ways:
            self._begin(flight, ways)
            onward = Copy(flight, copy.hops + 1, self._send_ns, Reason.MATCH)
            for way in ways:
                self._send(way, onward, now)
        self._end(flight, now)
