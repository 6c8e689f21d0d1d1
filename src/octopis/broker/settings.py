"""An overlay as it is to run: topology, routing, queues, links and addresses."""

from dataclasses import dataclass, field, replace
from enum import Enum

from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.routing import CONGESTION_THRESHOLD, WINDOW_MS, Algorithm
from octopis.core.topology import SCOT
from octopis.core.wire import FRAME_MAX
from octopis.errors import InvalidConfiguration


class LinkPolicy(Enum):
    """What happens at the bound of a link's queue."""

    DROP_NEWEST = "drop_newest"
    DROP_OLDEST = "drop_oldest"
    DISCONNECT = "disconnect"


class ClientPolicy(Enum):
    """What happens when a subscriber is too slow.

    `pause` raises a congestion notice at the queue's high-water mark, so that publishers wait
    for the subscriber; one that consumes nothing at all for `stall_s` is disconnected.
    """

    PAUSE = "pause"
    DROP_OLDEST = "drop_oldest"
    DISCONNECT = "disconnect"


@dataclass(frozen=True)
class QueueBounds:
    """How long a queue may get, in messages and in bytes, and when it counts as congested.

    Between the high-water mark and the bound there must be room for all that is under way when
    publishers are told to stop: a few batches of 256 from each host of publishers, and what the
    queues of the neighbours hold below their own marks. With up to nine links, a tenth will do.
    """

    capacity: int = 100_000
    capacity_bytes: int = 64 * 2**20
    high_water: int = 10_000
    high_water_bytes: int = 8 * 2**20

    def __post_init__(self) -> None:
        for mark, bound in (
            (self.high_water, self.capacity),
            (self.high_water_bytes, self.capacity_bytes),
        ):
            if not 1 <= mark <= bound:
                raise InvalidConfiguration(
                    f"a queue's high-water mark must be at least 1 and at most its capacity, "
                    f"not {mark:,} of {bound:,}"
                )


@dataclass(frozen=True)
class Shape:
    """What a link is slowed down to, in one direction."""

    bandwidth: float | None = None
    """Bytes per second."""

    latency_ms: float = 0.0

    def __post_init__(self) -> None:
        if (self.bandwidth is not None and not self.bandwidth > 0) or not self.latency_ms >= 0:
            raise InvalidConfiguration(
                "a link's bandwidth must be above 0 bytes/s and its latency at least 0 ms, "
                f"not {self.bandwidth} and {self.latency_ms}"
            )


@dataclass(frozen=True)
class Limits:
    """Times and sizes that protect a broker from whoever connects."""

    frame_max: int = FRAME_MAX
    publish_window: int = 2**20
    hello_s: float = 5.0
    keepalive_s: float = 5.0
    silence_s: float = 20.0
    stall_s: float = 10.0
    sync_s: float = 5.0
    drain_s: float = 5.0
    notice_renewal_s: float = 1.0
    redial_s_max: float = 1.0


@dataclass(frozen=True, kw_only=True)
class OverlayConfiguration:
    """Everything that the brokers of an overlay must agree on, and where each one listens."""

    scot: SCOT
    algorithm: Algorithm = Algorithm.DNR
    congestion_threshold: float = CONGESTION_THRESHOLD
    window_ms: float = WINDOW_MS
    queues: QueueBounds = QueueBounds()
    link_policy: LinkPolicy = LinkPolicy.DROP_NEWEST
    client_queues: QueueBounds = QueueBounds()
    client_policy: ClientPolicy = ClientPolicy.PAUSE
    shapes: dict[tuple[BrokerId, BrokerId], Shape] = field(default_factory=dict)
    """By direction: from a broker, to its neighbour."""

    addresses: dict[BrokerId, Address] = field(default_factory=dict)
    limits: Limits = Limits()
    insecure: bool = False
    """Whether brokers may listen where other machines reach them: there is no authentication."""

    def __post_init__(self) -> None:
        if not self.window_ms > 0:
            raise InvalidConfiguration(f"window_ms must be above 0, not {self.window_ms}")
        for source, target in self.shapes:
            self.scot.link_kind(source, target)

    def address(self, broker: BrokerId) -> Address:
        """Return where a broker listens, or raise InvalidConfiguration."""
        address = self.addresses.get(broker, Address())
        if not self.insecure and not address.is_loopback:
            raise InvalidConfiguration(
                f"{broker} would listen at {address}, where other machines can reach it, and "
                "there is no authentication yet: use 127.0.0.1, or say insecure = true"
            )
        return address

    def at(self, addresses: dict[BrokerId, Address]) -> "OverlayConfiguration":
        """Return the same overlay with these addresses."""
        return replace(self, addresses={**self.addresses, **addresses})
