"""What a neighbour may say, by the overlay's structure alone, whoever claims to be the neighbour.

The routing core believes its neighbours. So whatever can be known to be impossible is refused
before: words of another algorithm, brokers that are not there, subscriptions that this link cannot
carry. Whoever says such a thing is cut off.
"""

from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Broker, Message, NotificationMessage
from octopis.core.routing.algorithms.spreading import LIFE_BITS
from octopis.core.routing.messages import (
    Flooded,
    HeardVersions,
    HostChange,
    HostState,
    HostTable,
    HostVersions,
    Mark,
    Refresh,
    Subscribe,
    TableSnapshot,
)
from octopis.core.topology import SCOT, LinkKind
from octopis.errors import ProtocolError

GENERATION_JUMP_MAX = 1_000_000
"""A host's generations are counted, and it takes the next: else it could run out of numbers.

The changes within one may be any number: a host that hears of more than it has written begins
a generation above."""


class LinkChecks:
    """Checks what comes over one link."""

    def __init__(self, core: Broker, scot: SCOT, neighbour: BrokerId) -> None:
        self._core = core
        self._here = core.id
        self._neighbour = neighbour
        self._scot = scot
        self._brokers = frozenset(scot.brokers)
        self._is_acol = scot.link_kind(core.id, neighbour) is LinkKind.ACOL
        self._other_clusters = (1 << len(scot.clusters)) - 1 & ~(1 << core.id.cluster)
        self._algorithm: Algorithm = core.algorithm

    def check(self, messages: list[Message]) -> None:
        """Raise ProtocolError where a message cannot be."""
        for message in messages:
            if not self._core.speaks(message):
                spoken = f"{type(message).__name__} is not spoken under {self._algorithm}"
                raise ProtocolError(spoken)
            match message:
                case NotificationMessage():
                    self._notification(message)
                case Subscribe():
                    self._subscribe(message)
                case TableSnapshot():
                    for each in message.subscriptions:
                        self._subscribe(each)
                case _:
                    self._of_hosts(message)

    def _of_hosts(self, message: Message) -> None:
        match message:
            case Flooded() | HostState() | Refresh() | Mark():
                self._exists(message.host)
            case HostVersions():
                for host in message.known:
                    self._exists(host)
            case HostChange():
                self._host_change(message)
            case HostTable():
                self._version(message.host, message.generation)
            case HeardVersions():
                for host, (generation, _) in message.known.items():
                    self._version(host, generation)

    def _notification(self, message: NotificationMessage) -> None:
        if self._algorithm is Algorithm.TNR:  # those have a frame of their own
            raise ProtocolError(f"such a notification is not spoken under {self._algorithm}")
        if message.cbv_p & ~self._other_clusters:
            raise ProtocolError(f"{message.cbv_p} names clusters that cannot be pending")
        if message.targets >> len(self._brokers):
            raise ProtocolError("a notification is for brokers that are not there")

    def _host_change(self, change: HostChange) -> None:
        self._version(change.host, change.generation)
        if change.targets >> len(self._brokers) or change.tried >> 2 * len(self._scot.clusters):
            raise ProtocolError("a change is for brokers or over clusters that are not there")
        if change.after >= change.sequence or not (change.added or change.removed):
            raise ProtocolError(f"a change of {change.host} changes nothing")

    def _version(self, host: BrokerId, generation: int) -> None:
        self._exists(host)
        known = self._core.heard_of(host)[0]
        if (generation >> LIFE_BITS) - (known >> LIFE_BITS) > GENERATION_JUMP_MAX:
            raise ProtocolError(f"the generation {generation} of {host} cannot follow {known}")

    def _exists(self, host: BrokerId) -> None:
        if host not in self._brokers:
            raise ProtocolError(f"{host} is not in this overlay")

    def _subscribe(self, message: Subscribe) -> None:
        """A subscription comes through its host cluster, or from it: nothing else is passed on."""
        host, scot = message.host, self._scot
        self._exists(host)
        if self._is_acol:
            is_way = host.cluster == self._here.cluster and scot.distance(
                host, self._neighbour
            ) < scot.distance(host, self._here)
        else:
            is_way = host.cluster == self._neighbour.cluster
        if not is_way or message.cbv_s != 1 << host.cluster:
            raise ProtocolError(
                f"a subscription of {host} with CBV_s {message.cbv_s} cannot come from "
                f"{self._neighbour}"
            )
