"""CloudEvents 1.0 over HTTP: binary, structured and batch, in and out.

In: context attributes (but `specversion`), extensions and the members of JSON data that are plain
values become attributes; where a member has the name of a context attribute, that one counts. The
data as it came is the payload. Out: names of extensions allow hardly anything, so attributes and
payload go out as the data; an event of that type that comes back becomes what it was.
"""

import base64
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import msgspec

from octopis.core.model import Notification
from octopis.gateway.documents import CloudEvent, NotificationIn, NotificationOut
from octopis.gateway.doors.notations import checked
from octopis.gateway.problems import NOT_JSON, Problem, bad_json

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
OUR_TYPE = "octopis.notification"
_PREFIX = b"ce-"
_SCALARS = (str, int, float, bool)
_NAMED = ("data", "data_base64", "specversion")
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(rb"\\(.)")
_decode_event = msgspec.json.Decoder(CloudEvent).decode
_decode_members = msgspec.json.Decoder(dict[str, Any]).decode
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_ours = msgspec.json.Decoder(NotificationIn).decode


def read_binary(headers: Iterable[tuple[bytes, bytes]], content: str, body: bytes) -> Notification:
    """Return the notification of an event whose context is in headers and whose data is the body.

    Raises Problem.
    """
    context: dict[str, Any] = {}
    for name, value in headers:
        if name.startswith(_PREFIX):
            attribute = name[len(_PREFIX) :].decode("latin-1")
            context[attribute] = _header_text(attribute, value)
    if content:
        context["datacontenttype"] = content
    _check_context(context)
    is_json = not content or _is_json(content)
    return _notification(context, body, body if is_json and body else None)


def read_structured(body: bytes | msgspec.Raw) -> Notification:
    """Return the notification of one event in JSON, or raise Problem."""
    try:
        event = _decode_event(body)
        members = _decode_members(body)  # numbers out of range are found here
    except NOT_JSON as failure:
        raise bad_json(failure, "this is no CloudEvent 1.0") from failure
    context = {
        name: value for name, value in members.items() if name not in _NAMED and value is not None
    }
    _check_plain(context)
    if isinstance(event.data_base64, bytes):
        if isinstance(event.data, msgspec.Raw):
            raise Problem(400, "a CloudEvent has data or data_base64, not both")
        return _notification(context, event.data_base64, None)
    if not isinstance(event.data, msgspec.Raw):
        return _notification(context, b"", None)
    data = bytes(event.data)
    content = context.get("datacontenttype", "application/json")
    if isinstance(members["data"], str) and not _is_json(str(content)):
        return _notification(context, members["data"].encode(), None)
    return _notification(context, data, data)


def read_batch(body: bytes) -> list[Notification]:
    """Return the notifications of a batch of events, or raise Problem with the index."""
    try:
        events = _decode_batch(body)
    except NOT_JSON as failure:
        raise bad_json(failure, "this is no batch of CloudEvents") from failure
    found = []
    for index, event in enumerate(events):
        try:
            found.append(read_structured(event))
        except Problem as problem:
            problem.document.index = index
            raise
    return found


def write_event(out: NotificationOut) -> dict[str, Any]:
    """Return a notification as a CloudEvent in structured form."""
    data: dict[str, Any] = {"attributes": out.attributes}
    if out.payload:
        data["payload"] = base64.b64encode(out.payload).decode()
    when = datetime.fromtimestamp(out.intended_ns / 1e9, UTC)
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"{out.publisher}/{out.sequence}",
        "source": f"/octopis/{quote(out.publisher)}",
        "type": OUR_TYPE,
        "time": when.isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": data,
    }
    if out.position:
        event["position"] = str(out.position)
    return event


def _notification(context: dict[str, Any], payload: bytes, json_data: bytes | None) -> Notification:
    """Return what an event becomes; `json_data` is its data where that is JSON."""
    if json_data is None:
        return checked(context, payload)
    try:
        if context["type"] == OUR_TYPE:
            ours = _decode_ours(json_data)
            return checked(ours.attributes, ours.payload)
        data = msgspec.json.decode(json_data)
    except NOT_JSON as failure:
        raise bad_json(failure, "the data of the event") from failure
    if not isinstance(data, dict):
        return checked(context, payload)
    plain = {name: value for name, value in data.items() if isinstance(value, _SCALARS)}
    return checked({**plain, **context}, payload)


def _check_context(context: dict[str, Any]) -> None:
    version = context.pop("specversion", None)
    if version != "1.0":
        raise Problem(400, f"ce-specversion is 1.0 here, not {version!r}")
    for name in ("id", "source", "type"):
        if not context.get(name):
            raise Problem(400, f"a CloudEvent has a ce-{name} that is not empty")


def _check_plain(context: dict[str, Any]) -> None:
    for name, value in context.items():
        if not isinstance(value, str | int | bool):
            raise Problem(
                400, f"the extension {name!r} is text, integer or boolean in a CloudEvent"
            )


def _is_json(content: str) -> bool:
    kind = content.partition(";")[0].strip().lower()
    return kind in {"application/json", "text/json"} or kind.endswith("+json")


def _header_text(name: str, value: bytes) -> str:
    """Return what a header says, as section 3.1.3.2 of the HTTP binding has it; or raise Problem.

    Characters beyond ASCII are percent-encoded; older senders put values with spaces into quotes.
    """
    if value[:1] == b'"':
        quoted = _QUOTED.fullmatch(value)
        if quoted is None:
            raise Problem(400, f"the header ce-{name} begins with a quote that does not end well")
        value = _ESCAPED.sub(rb"\1", quoted[1])
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError as failure:
        raise Problem(400, f"the header ce-{name} is no UTF-8, percent-encoded") from failure
