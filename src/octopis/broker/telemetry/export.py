"""Hands spans to OpenTelemetry's SDK, which sends them to a collector by OTLP/HTTP in a thread.

Nobody waits for a collector: what it does not take is dropped, counted and said now and then. So is
what comes while `queue` spans wait for it already.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from octopis.broker.telemetry.options import SpanOptions
from octopis.broker.telemetry.visits import Finished, Kind
from octopis.logs import one_line
from octopis.version import __version__

CLOSE_S = 2.0
"""A process that stops waits so long for the collector to take the last spans."""

_BATCH = 512
_SAY_S = 60.0
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_KINDS = {
    Kind.PUBLISH: SpanKind.SERVER,  # the publisher waits for the answer
    Kind.HOP: SpanKind.CONSUMER,
    Kind.RESEND: SpanKind.PRODUCER,
    Kind.REROUTE: SpanKind.PRODUCER,
    Kind.DELIVER: SpanKind.PRODUCER,
}
_BROKER = "octopis.broker"
_log = logging.getLogger(__name__)
_LIBRARY = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")


@dataclass
class SpanCounts:
    """What has become of the spans of one broker."""

    exported: int = 0
    queue_full: int = 0
    refused: int = 0
    """The collector was not there, or did not take them."""


class Export:
    """Where the spans of this process's brokers go: `add` on the event loop, `close` at the end."""

    def __init__(self, options: SpanOptions) -> None:
        self._counts: dict[str, SpanCounts] = {}
        self._most = options.queue
        self._handed = 0
        self._ids = _GivenIds()
        inner = OTLPSpanExporter(options.url, timeout=options.timeout_s)
        self._out = _Counting(inner, self, options.url)
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,  # whoever began the trace has chosen
            resource=Resource.create({SERVICE_NAME: options.service_name}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        processor = BatchSpanProcessor(
            self._out,
            max_queue_size=options.queue,
            schedule_delay_millis=options.interval_s * 1000,
            max_export_batch_size=min(_BATCH, options.queue),
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("octopis", __version__)

    def counts(self, broker: str) -> SpanCounts:
        """Return what is counted of a broker's spans, by its short name."""
        return self._counts.setdefault(broker, SpanCounts())

    @property
    def dropped(self) -> int:
        """How many spans of all brokers were dropped."""
        return sum(each.queue_full + each.refused for each in self._counts.values())

    def add(self, finished: Finished) -> None:
        """Let a span go, or count it where too many wait already. Never waits."""
        if self._handed - self._out.done >= self._most:
            self.counts(finished.attributes[_BROKER]).queue_full += 1
            return
        self._handed += 1
        parent = SpanContext(finished.trace_id, finished.parent_id, True, _SAMPLED)
        self._ids.span_id = finished.span_id
        span = self._tracer.start_span(
            finished.kind.value,
            set_span_in_context(NonRecordingSpan(parent)),
            _KINDS[finished.kind],
            {
                "messaging.system": "octopis",
                "messaging.operation.name": finished.kind.value,
                **finished.attributes,
            },
            start_time=finished.begun_ns,
        )
        for name, at_ns, attributes in finished.events:
            span.add_event(name, attributes, at_ns)
        if finished.failure:
            span.set_status(StatusCode.ERROR, finished.failure)
        span.end(finished.ended_ns)

    def close(self) -> None:
        """Send what waits, but not for longer than `CLOSE_S`."""
        closing = threading.Thread(target=self._provider.shutdown, name="spans", daemon=True)
        closing.start()
        closing.join(CLOSE_S)
        if closing.is_alive():
            self._out.give_up()
            closing.join(CLOSE_S / 4)
        left = self._handed - self._out.done
        if left or self.dropped:
            _log.warning("%d spans were not sent, and %d were dropped before", left, self.dropped)


class _Counting(SpanExporter):
    """Exports by the library's exporter, counts, and says now and then what it cannot send."""

    def __init__(self, inner: OTLPSpanExporter, export: Export, place: str) -> None:
        self.done = 0
        self._inner: SpanExporter = inner
        self._place = place
        self._export = export
        self._is_refused = False
        self._said_at = -_SAY_S
        self._said = 0
        self._word = _LastWord()
        _LIBRARY.addFilter(self._word)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans, in the library's thread."""
        result = SpanExportResult.FAILURE
        try:
            result = self._inner.export(spans)
        finally:  # what it raises is the library's to log, and is counted, too
            self._count(spans, is_sent=result is SpanExportResult.SUCCESS)
        return result

    def _count(self, spans: Sequence[ReadableSpan], *, is_sent: bool) -> None:
        for span in spans:
            counts = self._export.counts(str((span.attributes or {})[_BROKER]))
            if is_sent:
                counts.exported += 1
            else:
                counts.refused += 1
        self.done += len(spans)
        self._say(is_sent=is_sent)

    def _say(self, *, is_sent: bool) -> None:
        dropped, now = self._export.dropped, time.monotonic()
        if is_sent and self._is_refused:
            _log.info("spans are taken again; %d were dropped", dropped)
        self._is_refused = not is_sent
        if dropped > self._said and now - self._said_at >= _SAY_S:
            self._said, self._said_at = dropped, now
            why = "more came than it takes" if is_sent else self._word.text
            _log.warning(
                "%d spans were dropped so far: %s: %s", dropped, self._place, one_line(why)
            )

    def give_up(self) -> None:
        """Try no longer."""
        self._inner.shutdown()

    def shutdown(self) -> None:
        """Let go of the library's exporter."""
        self._inner.shutdown()
        _LIBRARY.removeFilter(self._word)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the library's
        """Nothing is held back here."""
        return True


class _LastWord(logging.Filter):
    """Keeps what the library would log, of which there may be much, and lets none of it through."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a line."""
        self.text = record.getMessage()
        return False


class _GivenIds(IdGenerator):
    """Calls the next span as it is told to."""

    def __init__(self) -> None:
        self.span_id = 0

    def generate_span_id(self) -> int:
        """Return what the next span is called."""
        return self.span_id

    def generate_trace_id(self) -> int:
        """Every span has a parent, and its trace."""
        raise AssertionError("a span of a broker always has a parent")
