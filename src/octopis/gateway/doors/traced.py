"""The header `traceparent`: what a request publishes belongs to the trace of whoever sends it."""

from collections.abc import Sequence

from msgspec import structs

from octopis.client.traceparent import ATTRIBUTE, parse_traceparent
from octopis.core.model import Notification
from octopis.core.model.notification import ATTRIBUTES_MAX
from octopis.gateway.bodies import Scope, header

_HEADER = ATTRIBUTE.encode()


def traceparent_of(scope: Scope) -> str:
    """Return a request's `traceparent`; "" where it has none, or one that makes no sense."""
    text = header(scope, _HEADER)
    return text if parse_traceparent(text) is not None else ""


def traced(found: Sequence[Notification], traceparent: str) -> Sequence[Notification]:
    """Return notifications with that attribute, where they have none of their own, and room."""
    if not traceparent:
        return found
    return [
        each
        if ATTRIBUTE in each.attributes or len(each.attributes) >= ATTRIBUTES_MAX
        else structs.replace(each, attributes={**each.attributes, ATTRIBUTE: traceparent})
        for each in found
    ]
