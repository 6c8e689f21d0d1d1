"""What brokers send each other, why, and what a broker asks its driver to do.

Messages never change: a copy for another destination is a new value that shares the payload.
"""

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from operator import itemgetter

import msgspec

from octopis.core.filters import Filter
from octopis.core.model import BrokerId, ClusterBitVector, Notification


class Reason(Enum):
    """One word for each reason, as it stands in traces."""

    SUBSCRIPTION = "subscription"
    SYNC = "sync"
    MATCH = "match"
    PENDING = "pending"
    CASE_I = "I"
    CASE_II = "II"
    CASE_III = "III"
    TARGET = "target"
    LATE = "late"
    EARLY = "early"
    AROUND_OVERLOAD = "around overload"
    AROUND_FAULT = "around fault"
    WAITS = "waits"

    __hash__ = object.__hash__  # members are single; Enum's own hash is slow

    @property
    def in_words(self) -> str:
        """The reason as half a sentence."""
        return _WORDS[self]


_WORDS = {
    Reason.SUBSCRIPTION: "every broker must know the subscription",
    Reason.SYNC: "brokers compare what they know: the link has come up, or somebody asks",
    Reason.MATCH: "a matching subscription lies behind it",
    Reason.PENDING: "the notification carries this cluster as pending",
    Reason.CASE_I: "case I: the free iCOL with the shortest queue takes the pending clusters along",
    Reason.CASE_II: "case II: no target iCOL is free, so the least loaded aCOL takes them along",
    Reason.CASE_III: "case III: nothing is free, so the least loaded iCOL takes the others along",
    Reason.TARGET: "targets lie behind it in the tree",
    Reason.LATE: "its other end is a target: it crosses late",
    Reason.EARLY: "a whole branch wants this one cluster: it crosses early",
    Reason.AROUND_OVERLOAD: "around an overloaded link, by way of another cluster",
    Reason.AROUND_FAULT: "around a dead broker or a cut link, by way of another cluster",
    Reason.WAITS: "nothing is open: it waits on its own way",
}


NO_CLUSTERS = ClusterBitVector(0)


class Subscription(msgspec.Struct, frozen=True):
    """A filter under an id that is unique in the overlay.

    `epoch` rises when the subscriber moves to another broker, so that old news about where it
    was never replaces newer news. `owner` is what only its client can prove to be: nobody else
    moves it. What matches a `durable` one is kept by its host while the client is away, and for its
    host while that is dead.
    """

    id: str
    filter: Filter
    epoch: int = 0
    owner: str = ""
    durable: bool = False


class Subscribe(msgspec.Struct, frozen=True):
    """A subscription on its way: its host cluster (`cbv_s`) and its host broker."""

    subscription: Subscription
    cbv_s: ClusterBitVector
    host: BrokerId


class Unsubscribe(msgspec.Struct, frozen=True):
    """A subscription of which the sender has no more to say."""

    id: str


class TableSnapshot(msgspec.Struct, frozen=True):
    """All that the sender's neighbour must know from it, when their link has come up.

    A large one may come in parts, one after the other; only with the `last` it is whole.
    """

    subscriptions: tuple[Subscribe, ...]
    last: bool = True


class NotificationMessage(msgspec.Struct, frozen=True, gc=False):
    """A notification on its way.

    `cbv_p` names the clusters that this copy still has to reach (dynamic routing); `targets` the
    brokers (identification-based and target routing): bit i is the broker at place i of the
    overlay. `tried` are the clusters, as bits, from which it was sent around in this region
    (target routing). What an algorithm does not use is empty.

    On a channel (octopis.core.delivery) its host has numbered it: `origin` is the host and its
    life, and `distances` say for each target, in the order of bits, how far below `number` the
    number before it is that was for the same target.
    """

    notification: Notification
    cbv_p: ClusterBitVector = NO_CLUSTERS
    targets: int = 0
    tried: int = 0
    origin: int = 0
    number: int = 0
    distances: tuple[int, ...] = ()


@lru_cache(4096)
def _picked(targets: int, part: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """Return what picks the distances of a part of the targets, out of those of all."""
    places = []
    left = part
    while left:
        lowest = left & -left
        places.append((targets & lowest - 1).bit_count())
        left ^= lowest
    if len(places) == 1:
        return itemgetter(slice(places[0], places[0] + 1))
    return itemgetter(*places)


def copy_for(message: NotificationMessage, targets: int, tried: int) -> NotificationMessage:
    """Return a copy for some of the targets of a notification, which carries what is theirs."""
    if targets == message.targets and tried == message.tried:
        return message
    distances = message.distances
    if distances and targets != message.targets:
        distances = _picked(message.targets, targets)(distances)
    return NotificationMessage(
        message.notification, NO_CLUSTERS, targets, tried, message.origin, message.number, distances
    )


class Flooded(msgspec.Struct, frozen=True):
    """A change to the host's subscriptions that is flooded (identification-based routing).

    `host` is the broker's identification (BID). It numbers its changes by `sequence`;
    `generation` rises when it has to make its tree anew.
    """

    host: BrokerId
    generation: int
    sequence: int
    added: Subscription | None
    removed: str | None


class HostState(msgspec.Struct, frozen=True):
    """All subscriptions of a host, flooded as the first message of a new generation."""

    host: BrokerId
    generation: int
    sequence: int
    subscriptions: tuple[Subscription, ...]


class HostVersions(msgspec.Struct, frozen=True):
    """What the sender knows of each host, when a link has come up.

    Generation and sequence, and a checksum over the host's subscriptions.
    """

    known: dict[BrokerId, tuple[int, int, int]]


class Refresh(msgspec.Struct, frozen=True):
    """A wish, on its way to `host`, that it floods a generation newer than `generation`."""

    host: BrokerId
    generation: int


class HostChange(msgspec.Struct, frozen=True):
    """What a host's clients have changed (target routing), from `after` to `sequence`.

    Only the host writes it and numbers it, so whoever is at `after` or between comes to `sequence`
    by it. `generation` rises when the host has lost what it had. It spreads like a notification,
    to `targets`; a copy for one who has missed it has none.
    """

    host: BrokerId
    generation: int
    after: int
    sequence: int
    added: tuple[Subscription, ...] = ()
    removed: tuple[str, ...] = ()
    targets: int = 0
    tried: int = 0


class HostTable(msgspec.Struct, frozen=True):
    """All that a host has at a version, for a neighbour that has missed more than can be told.

    A large one comes in parts, one after the other; only with the `last` it is whole.
    """

    host: BrokerId
    generation: int
    sequence: int
    subscriptions: tuple[Subscription, ...]
    last: bool = True


class HeardVersions(msgspec.Struct, frozen=True):
    """How far the sender has heard of hosts: of all when a link has come up, else of those named.

    `is_complete`: the sender knows of nothing that it lacks.
    """

    known: dict[BrokerId, tuple[int, int]]
    is_complete: bool = True


class Mark(msgspec.Struct, frozen=True):
    """Stands behind all that the clients of `host` have changed before, wherever that goes.

    Marks of a host are numbered. `version` is what a broker must have heard of the host's changes
    where these are numbered, too: generation and sequence.
    """

    host: BrokerId
    number: int
    version: tuple[int, int] = (0, 0)


SubscriptionMessage = Subscribe | Unsubscribe | Flooded | HostChange
SyncMessage = TableSnapshot | HostState | HostVersions | Refresh | HostTable | HeardVersions | Mark
Message = SubscriptionMessage | SyncMessage | NotificationMessage


class Enqueue(msgspec.Struct, frozen=True):
    """Put these messages, in this order, on the output queue towards the neighbour `link`."""

    link: BrokerId
    messages: list[Message]
    reasons: list[Reason]


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Give the notification to a client; `subscriptions` are those of the client that match."""

    client: str
    notification: Notification
    subscriptions: list[str]


class Stored(msgspec.Struct, frozen=True):
    """Know that the table has an entry for a subscription that it had none for."""

    subscription: str
    host: BrokerId


class Lost(msgspec.Struct, frozen=True):
    """Tell a client that its subscription has gone on to another broker."""

    client: str
    subscription: str


class Marked(msgspec.Struct, frozen=True):
    """Know that a mark has come over `link`; `is_known`: and all that stands before it."""

    host: BrokerId
    number: int
    link: BrokerId
    is_known: bool


Effect = Enqueue | Deliver | Stored | Lost | Marked
