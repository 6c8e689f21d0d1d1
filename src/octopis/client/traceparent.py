"""What makes a notification traced: the text attribute `traceparent`, as W3C Trace Context has it.

It names a trace and, in that, the span of whoever publishes: 00-<trace>-<span>-<flags>, in
hexadecimal. What has another form is no `traceparent`, and nobody's fault.
"""

import re
from typing import NamedTuple

ATTRIBUTE = "traceparent"
LENGTH = 55
_FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED = 1


class TraceParent(NamedTuple):
    """A trace, a span in it, and whether whoever began the trace wants it recorded."""

    trace_id: int
    span_id: int
    is_sampled: bool


def parse_traceparent(text: object) -> TraceParent | None:
    """Return what a `traceparent` says; None where it is none."""
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    trace_id, span_id, flags = (int(each, 16) for each in found.groups())
    if not trace_id or not span_id:
        return None
    return TraceParent(trace_id, span_id, bool(flags & _SAMPLED))
