"""The gateway's description: OpenAPI 3.1, made of the structs of documents.py."""

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from octopis.gateway import documents as d
from octopis.gateway.live.pulse import Pulse
from octopis.gateway.problems import CONTENT_TYPE, ProblemDocument
from octopis.version import __version__

_PREFIX = "#/components/schemas/{name}"
_JSON = "application/json"


class Parameter(Struct, frozen=True):
    """A parameter of an operation."""

    name: str
    what: str
    where: str = "query"
    is_required: bool = False
    is_many: bool = False


class Operation(Struct, frozen=True):
    """One thing that can be asked for."""

    method: str
    path: str
    summary: str
    takes: dict[str, Any] = {}
    """Types, tuples of types of which any will do, or plain schemas, by content type."""

    gives: dict[str, Any] = {}
    parameters: tuple[Parameter, ...] = ()
    status: int = 200
    details: str = ""


_NAME = Parameter("name", "The durable subscription.", "path", is_required=True)
_TEXT: dict[str, Any] = {"type": "string"}

OPERATIONS = (
    Operation(
        "post",
        "/notifications",
        "Publish",
        {
            _JSON: (d.Values, d.NotificationIn, list[d.Values], list[d.NotificationIn]),
            "application/x-ndjson": _TEXT,
            "application/cloudevents+json": d.CloudEvent,
            "application/cloudevents-batch+json": list[d.CloudEvent],
        },
        {_JSON: d.Accepted},
        (),
        202,
        "Attributes as a JSON object, or with a payload in base64; an array of these; lines of "
        "them (NDJSON); CloudEvents 1.0, structured, in batches, or binary with ce- headers. The "
        "answer comes when the overlay has accepted all.",
    ),
    Operation(
        "get",
        "/notifications",
        "Subscribe to what a filter matches, as server-sent events",
        {},
        {"text/event-stream": _TEXT},
        (
            Parameter("filter", "A filter; several mean any of them.", is_many=True),
            Parameter("dialect", "How filters are written: sql (the default) or padres."),
            Parameter(
                "durable",
                "Follow the durable subscription of this name; it is made if it "
                "is not there and there is a filter.",
            ),
            Parameter("start", "Where a durable one begins: earliest, new or a position."),
            Parameter("acks", "manual, or auto: what was sent is acknowledged."),
            Parameter("format", "json (the default) or cloudevents."),
            Parameter(
                "last-event-id",
                "Acknowledge a durable subscription up to this event, and go on behind it.",
                "header",
            ),
        ),
        details="Each event has an id, and a notification as its data. Events of the kind gap say "
        "that notifications may be missing, end why the stream ends.",
    ),
    Operation(
        "get",
        "/durable/{name}",
        "Pull what comes next of a durable subscription",
        {},
        {_JSON: d.Excerpt},
        (
            _NAME,
            Parameter("max", "So many notifications at most (100)."),
            Parameter("wait_ms", "Wait so long where there is nothing (0)."),
            Parameter("after", "Begin behind this position, not behind the last acknowledged."),
        ),
        details="Pulling changes nothing: what is not acknowledged comes again.",
    ),
    Operation(
        "post",
        "/durable/{name}/ack",
        "Release a durable subscription up to a position, for good",
        {_JSON: d.Acknowledgement},
        {_JSON: d.Acknowledged},
        (_NAME,),
    ),
    Operation(
        "post",
        "/filters/check",
        "Check a filter",
        {_JSON: d.FilterQuestion},
        {_JSON: d.CheckedFilter},
    ),
    Operation(
        "post",
        "/filters/explain",
        "Explain why a filter matches or not",
        {_JSON: d.ExplainQuestion},
        {_JSON: d.ExplainedFilter},
    ),
    Operation(
        "post",
        "/routes/explain",
        "Explain where a notification would go, under each algorithm",
        {_JSON: d.RouteQuestion},
        {_JSON: d.RouteAnswers},
    ),
    Operation("get", "/overlay", "The overlay's plan", {}, {_JSON: d.OverlayPlan}),
    Operation("get", "/overlay/status", "How all brokers are", {}, {_JSON: d.OverlayStatus}),
    Operation(
        "get",
        "/overlay/live",
        "How the overlay is, twice a second, as server-sent events (pulse)",
        {},
        {"text/event-stream": Pulse},
    ),
    Operation(
        "get",
        "/overlay/brokers/{name}",
        "How one broker is",
        {},
        {_JSON: dict[str, Any]},
        (Parameter("name", "The broker, as in b,2.", "path", is_required=True),),
    ),
    Operation("get", "/metrics", "Metrics for Prometheus", {}, {"text/plain": _TEXT}),
    Operation(
        "get",
        "/ws",
        "A WebSocket for many filters, acks, credits and publications",
        {},
        {},
        (),
        101,
        "Frames hold JSON: one message or an array of them. See docs/gateway.md.",
    ),
)


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI description."""
    kinds = [
        kind
        for operation in OPERATIONS
        for content in (*operation.takes.values(), *operation.gives.values())
        for kind in (content if isinstance(content, tuple) else (content,))
        if not isinstance(kind, dict)
    ]
    schemas, components = msgspec.json.schema_components(
        [*kinds, ProblemDocument], ref_template=_PREFIX
    )
    by_kind = dict(zip(map(repr, kinds), schemas, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "OctopiS gateway",
            "version": __version__,
            "description": "Publish and subscribe by content, over HTTP and WebSocket.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # At an overlay with security; without it, nobody asks for a token.
        "security": [{"token": []}, {}],
    }


def _described(operation: Operation, by_kind: dict[str, Any]) -> dict[str, Any]:
    def schema_of(kind: Any) -> Any:
        if isinstance(kind, tuple):
            return {"anyOf": list(map(schema_of, kind))}
        return kind if isinstance(kind, dict) else by_kind[repr(kind)]

    def contents(kinds: dict[str, Any]) -> dict[str, Any]:
        return {content: {"schema": schema_of(kind)} for content, kind in kinds.items()}

    answer: dict[str, Any] = {"description": operation.summary}
    if operation.gives:
        answer["content"] = contents(operation.gives)
    problem = {CONTENT_TYPE: {"schema": {"$ref": _PREFIX.format(name="ProblemDocument")}}}
    found: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": id_of(operation),
        "responses": {
            str(operation.status): answer,
            "default": {"description": "What went wrong, and where", "content": problem},
        },
    }
    if operation.details:
        found["description"] = operation.details
    if operation.parameters:
        found["parameters"] = [_parameter(each) for each in operation.parameters]
    if operation.takes:
        found["requestBody"] = {"required": True, "content": contents(operation.takes)}
    return found


def id_of(operation: Operation) -> str:
    """Return the name of an operation."""
    words = operation.path.replace("{", "").replace("}", "").strip("/").replace("/", "_")
    return f"{operation.method}_{words}"


def _parameter(each: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": _TEXT} if each.is_many else _TEXT
    return {
        "name": each.name,
        "in": each.where,
        "required": each.is_required,
        "description": each.what,
        "schema": schema,
    }
