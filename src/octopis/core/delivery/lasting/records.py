"""What a broker writes to its log, so that its next life goes on where this one ended.

    Publication    accepted from a local publisher: to whom it goes, and which own durable
                   subscriptions want it
    Arrival        brought by a channel, for own durable subscriptions
    ChannelState   a channel begins with a life of its target
    Staged         rows that are not published yet, and perhaps never
    Decision       what of that is published
    Copy           what a durable subscription has from the host where it lived before

A record says all that it is about, whatever stands before or after it: `kept` are pairs of the key
of a durable subscription and the position there. So a record may be written again at the end of the
log, and of others around it one may be damaged.
"""

from enum import Enum

import msgspec
from msgspec import Struct


class Publication(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """An accepted publication, by whom it was published, and its number on channels (0: none).

    The body is empty where nobody wants it: then it is only known that it was accepted.
    """

    publisher: bytes
    sequence: int
    number: int
    targets: bytes
    distances: tuple[int, ...]
    kept: tuple[int, ...]
    body: bytes


class Arrival(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A notification that has come on a channel."""

    origin: int
    number: int
    kept: tuple[int, ...]
    body: bytes


class ChannelState(Struct, frozen=True, array_like=True, tag=3):
    """What a channel begins with; that with the highest `serial` holds.

    `durable`: its target has durable subscriptions. It stands before what is published for them, so
    that this is never there without it.
    """

    serial: int
    place: int
    life: int
    base: int
    fresh: int
    durable: bool = False


class Staged(Struct, frozen=True, array_like=True, tag=4, gc=False):
    """Rows of an attempt at a part of a batch that are not published yet (see staging.py).

    `rows` are `count` of them, from the row `first` on, as they came: nobody looks at them before
    they are published.
    """

    source: bytes
    batch: int
    part: int
    attempt: int
    first: int
    count: int
    rows: bytes


class Decision(Struct, frozen=True, array_like=True, tag=5):
    """Which attempts of a batch are published: their parts, numbers, and how many rows they have.

    So it is known whether all of these are there still. `is_one_off`: its source has no other
    batch, and nobody commits it again when whoever does so now has gone (see committed.py).
    """

    source: bytes
    batch: int
    attempts: tuple[tuple[int, int, int], ...]
    is_one_off: bool = False


class Copy(Struct, frozen=True, array_like=True, tag=6, gc=False):
    """A notification that a durable subscription has brought along when it moved here.

    It was copied from its last host; or it has come here meanwhile, and was `annexed` at that
    position of the annex (see moving.py).
    """

    annexed: int
    kept: tuple[int, ...]
    body: bytes


class Policy(Enum):
    """What becomes of a durable subscription when the disk's quota is full."""

    REFUSE = "refuse"
    """Publishers wait until there is room."""

    DROP_OLDEST = "drop_oldest"
    """It loses the oldest that it has not acknowledged, and is told."""

    SUSPEND = "suspend"
    """Nothing more is kept for it until it has acknowledged everything; it is told of the gap."""


class DurableState(Struct, frozen=True):
    """What is known of a durable subscription, beside what is in the log.

    `next` is the position after the last. `moved_to` is set where it lives elsewhere now, and
    nothing more is kept for it here; `joins` where it is on its way here. `cut` is up to
    where the host that it left had each stream then, and `until` the last position there; both
    hosts know it (see moving.py).

    Where clients log in, `filter` is what was `asked` for joined with the `guard`: all that the
    role of whoever opened it last allows to see. Both are empty where nobody logs in.
    """

    name: str
    key: int
    epoch: int
    owner: str
    filter: str
    policy: Policy
    moves: int
    created_ns: int
    used_ns: int
    acked: int = 0
    next: int = 1
    dropped: int = 0
    is_suspended: bool = False
    missed: int = 0
    moved_to: str = ""
    joins: bool = False
    cut: dict[int, int] | None = None
    until: int = 0
    asked: str = ""
    guard: str = ""


Record = Publication | Arrival | ChannelState | Staged | Decision | Copy

encode = msgspec.msgpack.Encoder().encode
decode_record = msgspec.msgpack.Decoder(Record).decode
decode_kept = msgspec.msgpack.Decoder(Publication | Arrival | Copy).decode
decode_durable = msgspec.msgpack.Decoder(DurableState).decode
