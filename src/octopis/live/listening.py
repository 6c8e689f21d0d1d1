"""Opens the doors of all brokers at once, before any of them runs.

So a port that is taken is found before anything has started, and ports that the system chooses
are known to all.
"""

import errno
import os
import socket

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.live.client_address import DEFAULT_PORT
from octopis.live.address import Address
from octopis.live.configuration import OverlayConfiguration
from octopis.live.document import PORT_MAX
from octopis.model import BrokerId

_BACKLOG = 128


def planned(overlay: OverlayConfiguration, first_port: int | None) -> dict[BrokerId, Address]:
    """Return where brokers are to listen.

    With `first_port`, their ports follow each other from it (0: any that are free). Without it,
    brokers keep the ports of their configuration, and the others follow from 7400.
    """
    taken = {address.port for address in overlay.addresses.values()}
    ports = iter(range(DEFAULT_PORT if first_port is None else first_port, PORT_MAX + 1))
    found = {}
    for broker in overlay.scot.brokers:
        host, port = overlay.address(broker)
        if first_port is not None:
            port = next(ports, -1) if first_port else 0
        elif not port:
            port = next((each for each in ports if each not in taken), -1)
        if not 0 <= port <= PORT_MAX:
            raise InvalidConfiguration(
                f"there are not enough ports from {first_port or DEFAULT_PORT} on for "
                f"{len(overlay.scot.brokers)} brokers: begin lower"
            )
        found[broker] = Address(host, port)
    return found


def open_doors(places: dict[BrokerId, Address]) -> dict[BrokerId, socket.socket]:
    """Return a socket that listens for each broker, or raise OperationFailed and leave none."""
    doors: dict[BrokerId, socket.socket] = {}
    try:
        for broker, address in places.items():
            doors[broker] = _open(broker, address)
    except OperationFailed:
        for door in doors.values():
            door.close()
        raise
    return doors


def address_of(door: socket.socket) -> Address:
    """Return where a door is."""
    host, port = door.getsockname()[:2]
    return Address(host, port)


def _open(broker: BrokerId, address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as failure:
        raise OperationFailed(
            f"{broker} cannot listen at {address}: {_reason(failure)}; nothing was "
            "started. See octopis overlay status, or choose other ports with --port"
        ) from failure


def _reason(failure: OSError) -> str:
    # Python adds its own words about the address, which stands in the sentence already.
    number = failure.errno
    if number is None or number not in errno.errorcode:
        return str(failure)
    return os.strerror(number)
