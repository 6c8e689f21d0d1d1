"""The door that Prometheus scrapes: threads of its own, away from the brokers' event loop.

The library's server and pages are used as they are. What is added keeps those at bay who never end
a request or never read an answer: each has `_PATIENCE_S`, and where too many are open the oldest
goes, so that whoever comes next is served.
"""

import asyncio
import io
import logging
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from octopis.broker.metrics.collector import BrokerCollector
from octopis.broker.settings import OverlayConfiguration
from octopis.client.address import Address
from octopis.errors import OperationFailed

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker
    from octopis.core.model import BrokerId

PATH = "/metrics"
OPEN_MAX = 16
"""So many requests may be open at a time."""

_PATIENCE_S = 10.0
_LOOK_S = 0.1
_SWITCH_S = 0.0005
"""By default a thread that renders would keep the event loop waiting for 5 ms each time."""

_log = logging.getLogger(__name__)
_Application = Callable[[dict[str, Any], Callable[..., object]], Iterable[bytes]]


class _LogStream(io.TextIOBase):
    """Where the library writes of scrapers that went away: into the log, at its lowest level."""

    def write(self, text: str, /) -> int:
        _log.debug("a scrape: %s", text.rstrip())
        return len(text)


class _Handler(WSGIRequestHandler):
    """One request, and a limit to how long it may take to come or its answer to go."""

    timeout = _PATIENCE_S

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log requests at the lowest level."""
        _log.debug(format, *args)

    def get_stderr(self) -> Any:
        """Return where traces of broken connections go."""
        return _LogStream()


class _Server(ThreadingWSGIServer):
    """The library's server with a bound: the oldest request ends where there are too many."""

    request_queue_size = 128
    """Who waits to be taken in beyond that tries again a second later: five are too few."""

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[socket.socket, None] = {}
        self._lock = Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a request, and perhaps end another."""
        with self._lock:
            if len(self._open) >= OPEN_MAX:
                oldest = next(iter(self._open))
                del self._open[oldest]
                _end(oldest)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a request that is over."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - library's
        """Say why a request has ended: loudly, unless it is the scraper's own doing."""
        failure = sys.exception()
        level = logging.DEBUG if isinstance(failure, OSError) else logging.ERROR
        _log.log(level, "a scrape of %s has failed", client_address, exc_info=failure)


class _IPv6Server(_Server):
    address_family = socket.AF_INET6


def _end(request: socket.socket) -> None:
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError as failure:
        _log.debug("an open scrape has just ended by itself: %s", failure)


def application(registry: CollectorRegistry) -> _Application:
    """Return the library's pages at /metrics; where brokers are stuck, an answer that says so."""
    pages = make_wsgi_app(registry)

    def answer(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        if environ["PATH_INFO"] not in {PATH, "/"}:
            start_response("404 Not Found", _PLAIN)
            return [f"there is nothing here: the metrics are at {PATH}\n".encode()]
        try:
            return pages(environ, start_response)  # type: ignore[no-any-return]
        except OperationFailed as failure:
            _log.warning("a scrape has failed: %s", failure)
            start_response("503 Service Unavailable", _PLAIN)
            return [f"{failure}\n".encode()]
        except Exception:
            _log.exception("the metrics cannot be shown")
            raise

    return answer


_PLAIN = [("Content-Type", "text/plain; charset=utf-8")]


@asynccontextmanager
async def exposed(
    overlay: OverlayConfiguration,
    brokers: "Mapping[BrokerId, LiveBroker]",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Address]:
    """Show the metrics of the brokers of this process, which may come later, and yield where.

    With `tls`, only to those who speak it, and prove who they are if it says so. Raises
    OperationFailed where the address is taken.
    """
    place = overlay.metrics.address
    registry = CollectorRegistry()
    registry.register(BrokerCollector(overlay, brokers, asyncio.get_running_loop()))
    ProcessCollector(registry=registry)
    kind = _IPv6Server if ":" in place.host else _Server

    def make() -> WSGIServer:
        return make_server(*place, application(registry), kind, _Handler)

    try:
        server = await asyncio.to_thread(make)  # it asks what the machine is called
    except OSError as failure:
        raise OperationFailed(
            f"metrics cannot be shown at {place}: {failure.strerror}; choose another port with "
            "--metrics-port or metrics.port (each process of an overlay takes the next one)"
        ) from failure
    if tls is not None:  # hands are shaken in the request's thread, not in the one that accepts
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
    thread = Thread(target=server.serve_forever, args=(_LOOK_S,), name="metrics", daemon=True)
    thread.start()
    _log.info("metrics are at http%s://%s%s", "s" if tls else "", place, PATH)
    try:
        yield place
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
