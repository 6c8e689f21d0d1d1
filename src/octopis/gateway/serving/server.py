"""Runs the gateway on the event loop of its process, until it is told to stop."""

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator

from uvicorn import Config, Server

from octopis.client.address import Address
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.gateway.app import Gateway
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.serving.door import TlsDoor
from octopis.gateway.serving.protocol import LimitedProtocol, sweep_for_ever
from octopis.gateway.serving.websocket import LimitedSocket
from octopis.gateway.settings import GatewayOptions
from octopis.security.bounds.shares import Shares

_BACKLOG = 512
_STOP_S = 1


class _Embedded(Server):
    """Uvicorn's server on our event loop; signals are ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    def made(self) -> LimitedProtocol:
        """Return what speaks HTTP on one more connection."""
        state = self.lifespan.state
        made = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=state
        )
        assert isinstance(made, LimitedProtocol)
        return made


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise OperationFailed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as failure:
        raise OperationFailed(
            f"the gateway cannot listen at {host}:{port}: {failure.strerror}; choose another port "
            "with --port (0: any that is free)"
        ) from failure


def check_place(view: OverlayView, options: GatewayOptions) -> None:
    """Raise InvalidConfiguration where a gateway would let in, or let listen, whoever likes."""
    if Address(options.host, options.port).is_loopback or options.insecure:
        return
    if view.security is not None and options.certificate:
        return
    raise InvalidConfiguration(
        f"the gateway would listen at {options.host}, where other machines can reach it: give it "
        "TLS (--certificate and --key) and an overlay with security, or say --insecure, and "
        "anybody may read and use it; 127.0.0.1 is for this machine alone"
    )


def tls_of(options: GatewayOptions) -> ssl.SSLContext | None:
    """Return how it speaks TLS, 1.2 or newer; None: not at all. Raises InvalidConfiguration."""
    if bool(options.certificate) != bool(options.key):
        raise InvalidConfiguration("--certificate and --key belong together: give both")
    if not options.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])

    def no_password() -> str:
        raise InvalidConfiguration(f"{options.key} is locked by a password")

    try:
        context.load_cert_chain(options.certificate, options.key, no_password)
    except OSError as failure:
        raise InvalidConfiguration(
            f"no certificate in {options.certificate} with the key {options.key}: "
            f"{failure.strerror or failure}"
        ) from failure
    return context


def url_of(listener: socket.socket, options: GatewayOptions) -> str:
    """Return where people find a gateway that listens there."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if options.certificate else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def serve(
    view: OverlayView,
    options: GatewayOptions,
    listener: socket.socket,
    stop: asyncio.Event,
    on_ready: Callable[[], None],
) -> None:
    """Serve at a socket until `stop`. Readers' streams end with it."""
    gateway = Gateway(view, options)
    tls = tls_of(options)
    server = _Embedded(_configured(gateway, options))
    gateway.connections = lambda: len(server.server_state.connections)
    gateway.start()
    loop = asyncio.get_running_loop()
    # What speaks TLS comes in by a door of ours, as uvicorn's would not count handshakes.
    serving = loop.create_task(server.serve(sockets=[] if tls else [listener]))
    sweeping = loop.create_task(sweep_for_ever(server.server_state))
    stopped = loop.create_task(stop.wait())
    door: TlsDoor | None = None
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        if tls is not None:
            door = TlsDoor(listener, tls, server.made, options.limits, gateway.counts)
            door.begin()
        on_ready()
        await asyncio.wait([serving, stopped, sweeping], return_when=asyncio.FIRST_COMPLETED)
        gateway.end_streams()
        if door is not None:
            door.close()
        server.should_exit = True
        await serving
    finally:
        for task in (sweeping, stopped):
            task.cancel()
        await gateway.close()
    if sweeping.done() and not sweeping.cancelled() and (failure := sweeping.exception()):
        raise failure


def _configured(gateway: Gateway, options: GatewayOptions) -> Config:
    """Return what uvicorn is told: our protocols with our limits, and none of its own."""
    most = options.limits
    of_all: Shares[str] = Shares(most.connections_per_host, most.connections)

    class Protocol(LimitedProtocol):
        limits, counts, shares = most, gateway.counts, of_all

    class Socket(LimitedSocket):
        limits, counts, shares = most, gateway.counts, of_all

    config = Config(
        gateway,
        loop="none",
        http=Protocol,
        ws=Socket,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=most.body_bytes,
        ws_per_message_deflate=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_STOP_S,
        backlog=_BACKLOG,
    )
    config.load()
    return config


def quiet_uvicorn() -> None:
    """Let uvicorn say only what went wrong; problems of clients are no news of ours."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def stop_at_signals(stop: asyncio.Event) -> None:
    """Stop when the process is told so from outside."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
