"""Spans for OpenTelemetry: the way of notifications that carry a `traceparent`."""
