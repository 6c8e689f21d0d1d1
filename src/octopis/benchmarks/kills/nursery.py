"""A process that starts brokers, each in a process of its own, and ends them as it is told.

`python -m octopis.benchmarks.kills.nursery OPTIONS` has loaded everything before the first broker
starts, so that one starts, and starts again, within milliseconds. It reads lines from standard
input: an order and a broker's number in the overlay. To each it answers with a line, the same one;
to a start with the id of the process, too.

    start 3       a broker starts
    kill 3        it ends at once, as by a power cut
    stop 3        it stands still, and its sockets stay open
    continue 3    it goes on
    cut 3 5       its link to another broker breaks, and what is on the wire is lost

No broker outlives it: each holds one end of a pipe, and ends when the other is closed.
"""

import os
import signal
import sys
import threading
from typing import Any, Never

import msgspec

from octopis.benchmarks.kills.sockets import abort_connection
from octopis.benchmarks.live.roles import overlay_named
from octopis.broker.settings import ClientQueues, Durability, Limits, OverlayConfiguration, Shape
from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.overlay.deployment import run

_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "continue": signal.SIGCONT}


class Overlay(msgspec.Struct, forbid_unknown_fields=True):
    """What overlay it is: by its name, where its brokers listen, and settings as live ones have."""

    overlay: str
    algorithm: str
    ports: list[int]
    limits: Limits = Limits()
    client_queues: ClientQueues = ClientQueues()
    shapes: list[tuple[str, str, Shape]] = []
    durability: Durability = Durability()

    def configuration(self) -> OverlayConfiguration:
        """Return the overlay as it is to run."""
        scot = overlay_named(self.overlay)
        places = zip(scot.brokers, self.ports, strict=True)
        return OverlayConfiguration(
            scot=scot,
            routing=RoutingOptions(Algorithm(self.algorithm)),
            addresses={broker: Address(port=port) for broker, port in places},
            limits=self.limits,
            client_queues=self.client_queues,
            durability=self.durability,
            shapes={
                (scot.broker(source), scot.broker(target)): shape
                for source, target, shape in self.shapes
            },
        )


class Nursery:
    """The brokers of an overlay, each a child of this process."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._overlay = msgspec.convert(options, Overlay).configuration()
        self._brokers = self._overlay.scot.brokers
        self._children: dict[int, int] = {}
        self._orders: dict[int, int] = {}
        """What is written here, the broker does itself; it ends when there is no more."""

    def obey(self, order: str, number: int, other: int | None = None) -> str:
        """Do what a line says; return what else there is to say."""
        if order == "start":
            return str(self._start(number))
        if order == "cut":
            assert other is not None
            for here, there in ((number, other), (other, number)):  # who has dialled, knows it
                port = self._overlay.addresses[self._brokers[there]].port
                os.write(self._orders[here], port.to_bytes(2))
            return ""
        os.kill(self._children[number], _SIGNALS[order])
        if order == "kill":
            os.waitpid(self._children.pop(number), 0)
            os.close(self._orders.pop(number))
        return ""

    def end(self) -> None:
        """End every broker."""
        for number in list(self._children):
            self.obey("kill", number)

    def _start(self, number: int) -> int:
        reading, self._orders[number] = os.pipe()
        child = os.fork()
        if not child:
            self._run(self._brokers[number], reading)
        os.close(reading)
        self._children[number] = child
        return child

    def _run(self, broker: BrokerId, reading: int) -> Never:
        for held in self._orders.values():  # while a child holds the other end, none is closed
            os.close(held)
        threading.Thread(target=_obey_the_nursery, args=(reading,), daemon=True).start()
        os.close(0)
        os.close(1)
        try:
            run(self._overlay, [broker])
        finally:
            os._exit(1)


def _obey_the_nursery(reading: int) -> None:
    """In a broker's process: break connections as told, and end with the nursery."""
    while port := os.read(reading, 2):
        abort_connection(int.from_bytes(port))
    os._exit(1)


def main() -> None:
    """Obey until standard input ends."""
    nursery = Nursery(msgspec.json.decode(sys.argv[1]))
    try:
        for line in sys.stdin:
            order, *numbers = line.split()
            said = nursery.obey(order, *map(int, numbers))
            sys.stdout.write(f"{line.rstrip()} {said}".rstrip() + "\n")
            sys.stdout.flush()
    finally:
        nursery.end()


if __name__ == "__main__":
    main()
