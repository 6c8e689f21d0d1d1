"""Where a broker listens: at one address for all, or under security at two, behind TLS."""

import asyncio
from socket import AF_INET, AF_INET6, create_server, socket
from typing import TYPE_CHECKING, Any

from octopis.broker.handshake import Reception
from octopis.client.address import Address
from octopis.errors import MissingExtra, OperationFailed

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker
    from octopis.broker.security.guard import Guard
    from octopis.broker.security.listener import Listener

_BACKLOG = 128


class Listening:
    """The sockets at which a broker listens. `open`, then `close`."""

    def __init__(self, broker: "LiveBroker", reception: Reception) -> None:
        self._broker = broker
        self._reception = reception
        self._server: asyncio.Server | None = None
        self.listeners: list[Listener] = []
        """Those behind TLS: for clients, and for neighbours."""

    async def open(
        self, sock: socket | None = None, link_sock: socket | None = None
    ) -> tuple[Address, Address]:
        """Listen, and return where clients connect, and where neighbours do.

        At sockets that are open already, where they are given. Raises InvalidConfiguration where an
        address is not allowed, OperationFailed where it is taken.
        """
        here, overlay = self._broker.id, self._broker.overlay
        address = overlay.address(here)
        if overlay.is_secure:
            return self._open_secure(
                sock or self._made(address), link_sock or self._made(overlay.link_address(here))
            )
        loop, make = asyncio.get_running_loop(), self._reception.make_connection
        try:
            if sock is not None:
                self._server = await loop.create_server(make, sock=sock)
            else:
                self._server = await loop.create_server(make, *address, reuse_address=True)
        except OSError as failure:
            raise OperationFailed(f"{here} cannot listen at {address}: {failure}") from failure
        place = _place(self._server.sockets[0])
        return place, place

    def _open_secure(self, sock: socket, link_sock: socket) -> tuple[Address, Address]:
        from octopis.broker.security.greeting import ClientGreeting, LinkGreeting  # noqa: PLC0415
        from octopis.broker.security.listener import Listener  # noqa: PLC0415 - its libraries are extra

        broker, guard, reception = self._broker, self._broker.guard, self._reception
        assert guard is not None, "who is secure has a guard"
        self.listeners = [
            Listener(
                broker,
                sock,
                lambda: guard.contexts.clients,
                lambda: ClientGreeting(broker, guard, reception),
            ),
            Listener(
                broker,
                link_sock,
                lambda: guard.contexts.links,
                lambda: LinkGreeting(broker, guard, reception),
            ),
        ]
        for each in self.listeners:
            each.begin()
        return _place(sock), _place(link_sock)

    def _made(self, address: Address) -> socket:
        family = AF_INET6 if ":" in address.host else AF_INET
        try:
            return create_server(address, family=family, backlog=_BACKLOG)
        except OSError as failure:
            reason = f"{self._broker.id} cannot listen at {address}: {failure}"
            raise OperationFailed(reason) from failure

    def close(self) -> None:
        """Take nobody in any more; connections that stand go on."""
        if self._server is not None:
            self._server.close()
        for each in self.listeners:
            each.close()


def guard_of(broker: "LiveBroker") -> "Guard | None":
    """Return who watches over a broker, None without security.

    Raises InvalidConfiguration where its folder cannot be used, MissingExtra without its libraries.
    """
    if not broker.overlay.is_secure:
        return None
    try:
        from octopis.broker.security.guard import Guard  # noqa: PLC0415 - its libraries are extra
    except ModuleNotFoundError as failure:
        library = (failure.name or "its libraries").partition(".")[0]
        raise MissingExtra("a broker with security", library, "security") from failure
    return Guard(broker)


def _place(sock: Any) -> Address:
    host, port = sock.getsockname()[:2]
    return Address(host, port)
