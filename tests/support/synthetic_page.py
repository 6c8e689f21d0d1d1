"""The dashboard over an overlay that is not there: pulses are made up, with new loads in each.

So what the page itself takes is measured, with nothing else beside it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import NamedTuple

import msgspec

from octopis.core.topology import SCOT, NamedTopology, format_topology
from octopis.gateway.app import PAGE
from octopis.gateway.live.pulse import LiveBroker, LiveLink, Pulse
from octopis.gateway.overlay_view import OverlayView, plan_of
from octopis.overlay.settings import parse_overlay

PULSE_S = 0.5
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class _Overlay:
    """A plan, and pulses; in each the first link is overloaded, and as many wait as its number."""

    def __init__(self, scot: SCOT, pulses: int) -> None:
        document = format_topology(NamedTopology("synthetic", "", scot))
        addresses = {each.short: "127.0.0.1:1" for each in scot.brokers}
        plan = plan_of(OverlayView("synthetic", addresses, parse_overlay(document, "here")))
        assert plan is not None
        self.plan = msgspec.json.encode(plan)
        self._ways = [way for each in plan.links for way in (each.ends, each.ends[::-1])]
        self._brokers = list(addresses)
        random = Random(1)  # noqa: S311 - makes up loads
        self.pulses = [self._pulse(number, random) for number in range(1, 1 + pulses)]

    def _pulse(self, number: int, random: Random) -> bytes:
        links = {
            ">".join(way): LiveLink(
                up=True,
                rate_s=round(10 ** random.uniform(0, 4), 3),
                queue=random.randint(0, 40),
                element=random.random(),
                around_fault_s=float(random.random() < 0.02),
            )
            for way in self._ways
        }
        links[">".join(self._ways[0])] = LiveLink(up=True, queue=number, overloaded=True)
        brokers = {
            name: LiveBroker(
                up=True, clients=random.randint(0, 99), published_s=random.uniform(0, 1e4)
            )
            for name in self._brokers
        }
        return msgspec.json.encode(Pulse(time.time_ns() // 10**6, brokers, links, [], []))


class Synthetic(NamedTuple):
    """Where the page is; all pulses but the first come once they are let go."""

    url: str
    go: threading.Event


@contextmanager
def synthetic_page(scot: SCOT, pulses: int) -> Iterator[Synthetic]:
    """Serve the page, with so many pulses at the pace of a gateway."""
    overlay = _Overlay(scot, pulses)
    go, ended = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/overlay/live":
                self._answer("text/event-stream")
                for each in overlay.pulses:
                    self.wfile.write(b"event: pulse\ndata: %b\n\n" % each)
                    go.wait()
                    if ended.wait(PULSE_S):
                        return
                ended.wait()
            elif self.path == "/overlay":
                self._answer("application/json", overlay.plan)
            else:
                names = {"/": "index.html", "/favicon.ico": "favicon.svg"}
                name = names.get(self.path, self.path.removeprefix("/static/"))
                self._answer(_KINDS[name.rpartition(".")[2]], (PAGE / name).read_bytes())

        def _answer(self, kind: str, body: bytes = b"") -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Synthetic(f"http://127.0.0.1:{server.server_address[1]}/", go)
    finally:
        ended.set()
        go.set()
        server.shutdown()
        thread.join()
        server.server_close()
