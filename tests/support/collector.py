"""A collector of spans: it takes them by OTLP/HTTP as any other does, and keeps them."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

TRACE = "0af7651916cd43dd8448eb211c80319c"
ROOT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{ROOT}-01"


class Event(NamedTuple):
    """An event of a span."""

    name: str
    about: Mapping[str, Any]


class Span(NamedTuple):
    """A span as it came; ids in hexadecimal, attributes without `octopis.`."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    begun_ns: int
    ended_ns: int
    about: Mapping[str, Any]
    events: list[Event]
    failure: str
    service: str

    @property
    def place(self) -> str:
        """What it is about and where, as in `hop b,0`."""
        return f"{self.name} {self.about['broker']}"


class Collector(ThreadingHTTPServer):
    """Keeps the spans of all requests; `status` is what it answers, after `delay_s`."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.spans: list[Span] = []
        self.requests = 0
        self.status = 200
        self.released = threading.Event()
        self.released.set()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait_for(self, holds: Callable[[list[Span]], object], limit_s: float = 20.0) -> list[Span]:
        """Return all spans as soon as they are as wanted."""
        deadline = time.monotonic() + limit_s
        while not holds(self.spans):
            places = [each.place for each in self.spans]
            assert time.monotonic() < deadline, f"the wanted spans have not come: {places}"
            time.sleep(0.01)
        return list(self.spans)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests += 1
        self.server.released.wait()
        if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
            self._answer(404, b"")
            return
        if self.server.status == 200:
            self.server.spans += _spans_of(ExportTraceServiceRequest.FromString(body))
        self._answer(self.server.status, ExportTraceServiceResponse().SerializeToString())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


def _spans_of(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in request.resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            assert scope.scope.name == "octopis"
            for each in scope.spans:
                yield Span(
                    each.name,
                    each.kind,
                    each.trace_id.hex(),
                    each.span_id.hex(),
                    each.parent_span_id.hex(),
                    each.start_time_unix_nano,
                    each.end_time_unix_nano,
                    _attributes(each.attributes),
                    [Event(event.name, _attributes(event.attributes)) for event in each.events],
                    each.status.message,
                    service,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {each.key.removeprefix("octopis."): _value(each.value) for each in pairs}


def _value(value: AnyValue) -> Any:
    return getattr(value, str(value.WhichOneof("value")))


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    """Run a collector in threads of its own."""
    with Collector(port) as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield collector
        finally:
            collector.released.set()
            collector.shutdown()
            thread.join()


def but_resends(spans: list[Span]) -> list[Span]:
    """Leave out what a channel has sent again, as a busy machine was slow to acknowledge it."""
    if not any(each.name == "resend" for each in spans):
        return list(spans)
    first: dict[tuple[str, int], Span] = {}
    for each in sorted(spans, key=lambda span: span.begun_ns):
        if each.name != "resend":
            what = each.id if each.name == "deliver" else each.place
            first.setdefault((what, each.about["sequence"]), each)
    return list(first.values())


def tree(spans: list[Span]) -> dict[str, str]:
    """Return the place of the parent of each span, by its own place.

    All are of one trace, each has its own id, and its parent is among them or the publisher's span.
    """
    by_id = {each.id: each for each in spans}
    assert len(by_id) == len(spans), "two spans have the same id"
    found = {}
    for each in spans:
        assert each.trace == TRACE
        assert each.begun_ns <= each.ended_ns
        parent = "publisher" if each.parent == ROOT else by_id[each.parent].place
        place = each.place
        if "client" in each.about:
            place += f" to {each.about['client']}"
        assert place not in found, f"there are two of {place}"
        found[place] = parent
    return found
