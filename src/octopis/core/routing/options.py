"""How an overlay routes, as users set it: the same for scenarios and for live overlays."""

from typing import Annotated

from msgspec import Meta, Struct

from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.link_status import CONGESTION_THRESHOLD, WINDOW_MS


class RoutingOptions(Struct, frozen=True):
    """How notifications are routed, and when a queue counts as congested."""

    algorithm: Annotated[Algorithm, Meta(description="how notifications are routed")]
    congestion_threshold: Annotated[
        float, Meta(gt=0, description="tau: above it a queue is congested")
    ] = CONGESTION_THRESHOLD
    window_ms: Annotated[
        float, Meta(ge=0.001, lt=1e6, description="t_w: queues are watched over it")
    ] = WINDOW_MS
