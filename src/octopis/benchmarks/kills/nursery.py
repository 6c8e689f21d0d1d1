"""A process that starts brokers, each in a process of its own, and ends them as it is told.

`python -m octopis.benchmarks.kills.nursery OPTIONS` has loaded everything before the first broker
starts, so that one starts, and starts again, within milliseconds. It reads lines from standard
input: an order and a broker's number in the overlay. To each it answers with a line.

    start 3       a broker starts
    kill 3        it ends at once, as by a power cut
    stop 3        it stands still, and its sockets stay open
    continue 3    it goes on

No broker outlives it: each holds one end of a pipe, and ends when the other is closed.
"""

import os
import signal
import sys
import threading
from typing import Any

import msgspec

from octopis.benchmarks.broker_roles import overlay_named
from octopis.broker.settings import Limits, OverlayConfiguration
from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.overlay.deployment import run

_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "continue": signal.SIGCONT}


class Nursery:
    """The brokers of an overlay, each a child of this process."""

    def __init__(self, options: dict[str, Any]) -> None:
        scot = overlay_named(options["overlay"])
        self._brokers = scot.brokers
        places = zip(scot.brokers, options["ports"], strict=True)
        self._overlay = OverlayConfiguration(
            scot=scot,
            routing=RoutingOptions(Algorithm(options["algorithm"])),
            addresses={broker: Address(port=port) for broker, port in places},
            limits=msgspec.convert(options["limits"], Limits),
        )
        self._alive, self._held = os.pipe()
        self._children: dict[int, int] = {}

    def obey(self, order: str, number: int) -> None:
        """Do what a line says."""
        if order == "start":
            self._start(number)
            return
        os.kill(self._children[number], _SIGNALS[order])
        if order == "kill":
            os.waitpid(self._children.pop(number), 0)

    def end(self) -> None:
        """End every broker."""
        for number in list(self._children):
            self.obey("kill", number)

    def _start(self, number: int) -> None:
        child = os.fork()
        if child:
            self._children[number] = child
            return
        os.close(self._held)
        threading.Thread(target=self._end_with_the_nursery, daemon=True).start()
        os.close(0)
        os.close(1)
        self._run(self._brokers[number])

    def _run(self, broker: BrokerId) -> None:
        try:
            run(self._overlay, [broker])
        finally:
            os._exit(1)

    def _end_with_the_nursery(self) -> None:
        os.read(self._alive, 1)
        os._exit(1)


def main() -> None:
    """Obey until standard input ends."""
    nursery = Nursery(msgspec.json.decode(sys.argv[1]))
    try:
        for line in sys.stdin:
            order, number = line.split()
            nursery.obey(order, int(number))
            sys.stdout.write(line)
            sys.stdout.flush()
    finally:
        nursery.end()


if __name__ == "__main__":
    main()
