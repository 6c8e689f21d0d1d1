"""All JSON that goes in and out, as structs: the OpenAPI description is made of these."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

Values = dict[str, str | int | float | bool]
WhatIfAlgorithm = Literal["bid", "snr", "dnr", "tnr"]
_ALGORITHMS: tuple[WhatIfAlgorithm, ...] = ("bid", "snr", "dnr", "tnr")
TruthWord = Literal["true", "false", "unknown"]


class Accepted(Struct, frozen=True):
    """How many notifications were accepted: a broker has them, or its disk where it has one."""

    accepted: int


class NotificationIn(Struct, frozen=True, forbid_unknown_fields=True):
    """A notification with a payload; one without may be written as its attributes alone."""

    attributes: dict[str, Any]
    payload: bytes = b""
    publisher: str = ""
    sequence: int = 0
    intended_ns: int = 0
    subscriptions: list[str] = []
    position: int = 0


class NotificationOut(Struct, frozen=True, omit_defaults=True):
    """A notification as subscribers get it; the payload is in base64.

    `publisher` and `sequence` together name it; `intended_ns` is when it was meant to be published,
    in nanoseconds since 1970. `position` is its place in a durable subscription.
    """

    attributes: Values
    publisher: str
    sequence: int
    intended_ns: int
    payload: bytes = b""
    position: int = 0


class CloudEvent(Struct, frozen=True, omit_defaults=True):
    """A CloudEvent 1.0 in structured form; extensions stand beside these members."""

    specversion: Annotated[str, Meta(pattern=r"^1\.0$")]
    id: Annotated[str, Meta(min_length=1)]
    source: Annotated[str, Meta(min_length=1)]
    type: Annotated[str, Meta(min_length=1)]
    subject: str | UnsetType = UNSET
    time: str | UnsetType = UNSET
    datacontenttype: str | UnsetType = UNSET
    dataschema: str | UnsetType = UNSET
    data: msgspec.Raw | UnsetType = UNSET
    data_base64: bytes | UnsetType = UNSET


class Excerpt(Struct, frozen=True):
    """What was pulled of a durable subscription.

    Before the first `missing` were dropped or are damaged. `end` is the last position that there
    was. `epoch` is another one where the subscription was made anew: it is text, as it is too long
    for the numbers of JavaScript.
    """

    name: str
    epoch: str
    notifications: list[NotificationOut]
    missing: int
    end: int


Position = Annotated[int, Meta(ge=0, lt=2**62)]
"""A place in a durable subscription."""


class Acknowledgement(Struct, frozen=True, forbid_unknown_fields=True):
    """All up to `position` is done with. With `epoch`, only of the subscription that was read."""

    position: Position
    epoch: str | None = None


class Acknowledged(Struct, frozen=True):
    """All up to `position` is released, for good."""

    name: str
    position: int


class FilterQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A filter that is to be checked."""

    filter: str
    dialect: str = "sql"


class CheckedFilter(Struct, frozen=True):
    """A filter in its normal form, the attributes it asks for, and what may surprise about it."""

    filter: str
    names: list[str]
    warnings: list[str]


class ExplainQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A filter, and the attributes of a notification that it may match."""

    filter: str
    attributes: dict[str, Any]
    dialect: str = "sql"


class ExplainedLine(Struct, frozen=True):
    """A condition, its truth and why; conditions inside it follow, one deeper."""

    text: str
    truth: TruthWord
    reason: str
    depth: int


class ExplainedFilter(Struct, frozen=True):
    """Whether a filter matches, and why."""

    truth: TruthWord
    lines: list[ExplainedLine]


class Subscriber(Struct, frozen=True, forbid_unknown_fields=True):
    """A subscriber in a question about ways."""

    name: str
    broker: str
    filter: str = "TRUE"


_Links = Annotated[list[tuple[str, str]], Meta(max_length=10_000)]


class RouteQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A notification that is published at a broker, and the links and brokers at fault meanwhile.

    Links are pairs of neighbours; those that are overloaded are so in one direction, from the first
    to the second. Without `topology`, a name of the catalogue, it is about this overlay.
    """

    publish: str
    attributes: dict[str, Any] = {}
    subscribers: Annotated[list[Subscriber], Meta(max_length=200)] = []
    overloaded: _Links = []
    dead: Annotated[list[str], Meta(max_length=1_000)] = []
    cut: _Links = []
    algorithms: Annotated[list[WhatIfAlgorithm], Meta(max_length=len(_ALGORITHMS))] = field(
        default_factory=lambda: list(_ALGORITHMS)
    )
    topology: str | None = None


class RouteHop(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """A copy over a link, why it went there, and what it carries (bits, BIDs or targets)."""

    source: str
    target: str
    reason: str
    words: str
    carries: str


class RouteDelivery(Struct, frozen=True):
    """A subscriber that was reached, over so many links."""

    subscriber: str
    broker: str
    hops: int


class RouteAnswer(Struct, frozen=True):
    """Where the notification goes under one algorithm."""

    messages: int
    hops: list[RouteHop]
    deliveries: list[RouteDelivery]
    lost: list[str]
    duplicates: int


class RouteAnswers(Struct, frozen=True):
    """The same under several algorithms, by their names."""

    algorithms: dict[str, RouteAnswer]


class BrokerPlace(Struct, frozen=True):
    """A broker and where it listens."""

    name: str
    region: str
    cluster: int
    address: str


class LinkPlace(Struct, frozen=True):
    """A link between two neighbours."""

    ends: tuple[str, str]
    kind: Literal["aCOL", "iCOL"]


class OverlayPlan(Struct, frozen=True):
    """An overlay as it was set up. Regions are in the order in which they are drawn."""

    name: str
    algorithm: str
    threshold: float
    window_ms: float
    level: str
    durable: bool
    security: bool
    regions: list[str]
    clusters: list[int]
    tree: list[tuple[str, str]]
    brokers: list[BrokerPlace]
    links: list[LinkPlace]


class OverlayStatus(Struct, frozen=True):
    """The status of all brokers, and the sums, as `octopis overlay status --json` has it."""

    overlay: str
    total: dict[str, Any]
    brokers: dict[str, dict[str, Any]]
