"""An overlay as it is to run: topology, routing, queues, links, limits and addresses.

Every setting is a field here, or of `core.routing.options`, `core.delivery.options` and
`telemetry.options`, with its bounds and what it means. The overlay's file, the environment, the
file that is written out and the table in docs/live.md all come from these fields: a new setting is
one new field.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from msgspec import Meta, Struct, structs

from octopis.broker.telemetry.options import SpanOptions
from octopis.client.address import Address
from octopis.core.delivery.lasting.committed import QUERIES_MAX
from octopis.core.delivery.options import DeliveryOptions, Level
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.toml import check
from octopis.core.topology import SCOT
from octopis.core.wire import FRAME_MAX
from octopis.errors import InvalidConfiguration
from octopis.store import Sync

_Time = Annotated[float, Meta(gt=0, lt=1e12)]
_Size = Annotated[int, Meta(gt=0, lt=10**12)]
_Count = Annotated[int, Meta(ge=1)]

DEFAULT_ROUTING = RoutingOptions(Algorithm.TNR)


class LinkPolicy(Enum):
    """What happens at the bound of a link's queue."""

    DROP_NEWEST = "drop_newest"
    DROP_OLDEST = "drop_oldest"
    DISCONNECT = "disconnect"


class ClientPolicy(Enum):
    """What happens when a subscriber is too slow.

    `drop_oldest` costs nobody else anything: at the bound of its queue the subscriber loses its
    oldest deliveries, and is told how many. `pause` raises a backpressure notice at the queue's
    high-water mark, so that all publishers wait for the subscriber; one that consumes nothing at
    all for `stall_s` is disconnected.
    """

    PAUSE = "pause"
    DROP_OLDEST = "drop_oldest"
    DISCONNECT = "disconnect"


class QueueBounds(Struct, frozen=True):
    """How long a queue may get, in messages and in bytes, and when there is backpressure.

    Between the high-water mark and the bound there must be room for all that is under way when
    publishers are told to stop: a few batches of 256 from each host of publishers, and what the
    queues of the neighbours hold below their own marks. With up to nine links, a tenth will do.
    """

    capacity: Annotated[_Count, Meta(description="messages that a queue holds at most")] = 100_000
    capacity_bytes: Annotated[_Count, Meta(description="bytes that it holds at most")] = 64 * 2**20
    high_water: Annotated[_Count, Meta(description="messages beyond which publishers wait")] = (
        10_000
    )
    high_water_bytes: Annotated[_Count, Meta(description="bytes beyond which they wait")] = (
        8 * 2**20
    )

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


class LinkQueues(QueueBounds, frozen=True):
    """How long the queue of a link may get, and what happens then."""

    policy: Annotated[LinkPolicy, Meta(description="what happens at the bound")] = (
        LinkPolicy.DROP_NEWEST
    )


class ClientQueues(QueueBounds, frozen=True):
    """How far a subscriber may be behind, and what happens then."""

    policy: Annotated[ClientPolicy, Meta(description="what happens to a slow subscriber")] = (
        ClientPolicy.DROP_OLDEST
    )


class Shape(Struct, frozen=True):
    """What a link is slowed down to, in one direction."""

    bandwidth_bytes_per_s: (
        Annotated[float, Meta(gt=0, description="what goes over a link in a second")] | None
    ) = None
    latency_ms: Annotated[float, Meta(ge=0, description="how long it is on its way")] = 0.0


class Limits(Struct, frozen=True):
    """Times and sizes that protect a broker from whoever connects."""

    frame_max: Annotated[_Size, Meta(description="bytes of a frame at most")] = FRAME_MAX
    publish_window: Annotated[
        _Size, Meta(description="bytes of publications that a client may have without an answer")
    ] = 2**20
    subscriptions_per_client: Annotated[
        _Size, Meta(description="subscriptions that a client may have; durable ones, an owner")
    ] = 10_000
    terms_per_client: Annotated[
        _Size, Meta(description="terms of all filters of a client; of durable ones, of an owner")
    ] = 100_000
    matching_ms_per_client: Annotated[
        _Time, Meta(description="what the LIKEs of these filters may cost on longest texts")
    ] = 50.0
    clients_per_user: Annotated[
        _Count,
        Meta(description="so many clients' shares a user's live subscriptions take at most"),
    ] = 10
    clients_per_host: Annotated[
        _Size, Meta(description="clients that may be connected from one address")
    ] = 4_000
    half_open_per_host: Annotated[
        _Size, Meta(description="connections of one address that are not let in yet; under TLS")
    ] = 64
    half_open: Annotated[
        _Size, Meta(description="connections that are not let in yet, in all; under TLS")
    ] = 512
    strangers_per_s: Annotated[
        _Time, Meta(description="connections of one address that come to no login; under TLS")
    ] = 50.0
    publish_bytes_per_s: Annotated[
        _Size, Meta(description="bytes that a client may publish in a second; more has to wait")
    ] = 256 * 2**20
    client_bytes: Annotated[
        _Size, Meta(description="bytes that a broker holds for all its clients together")
    ] = 2**30
    hello_s: Annotated[_Time, Meta(description="a greeting must be over by then")] = 5.0
    keepalive_s: Annotated[
        _Time, Meta(description="neighbours are asked for a sign of life so often")
    ] = 1.0
    silence_s: Annotated[
        _Time, Meta(description="a neighbour that gives none for so long is disconnected")
    ] = 4.0
    client_silence_s: Annotated[
        _Time, Meta(description="the same for a client, which is asked four times as often")
    ] = 20.0
    stall_s: Annotated[
        _Time, Meta(description="a subscriber that publishers wait for must consume within it")
    ] = 10.0
    session_s: Annotated[
        float,
        Meta(ge=0, lt=1e12, description="a client whose connection breaks can go on within it"),
    ] = 10.0
    sync_s: Annotated[_Time, Meta(description="a fresh broker waits so long for neighbours")] = 5.0
    drain_s: Annotated[_Time, Meta(description="a stop waits so long for queues to empty")] = 5.0
    notice_renewal_s: Annotated[
        _Time, Meta(description="backpressure notices are renewed so often, while they hold")
    ] = 1.0
    redial_s_max: Annotated[_Time, Meta(description="between two tries to dial a neighbour")] = 1.0


class Durability(Struct, frozen=True):
    """Where brokers keep what must outlive them, and how much of it."""

    folder: Annotated[
        str, Meta(description="where brokers keep what they accept; empty: in memory alone")
    ] = ""
    quota_bytes: Annotated[
        int, Meta(ge=2**20, lt=2**50, description="bytes that each broker keeps there at most")
    ] = 2**30
    sync: Annotated[
        Sync, Meta(description="accepted is synced (always), or written and synced soon (interval)")
    ] = Sync.ALWAYS
    interval_ms: Annotated[_Time, Meta(description="how soon, with interval")] = 100.0
    wait_s: Annotated[
        _Time, Meta(description="publishers wait so long for room on disk before they are refused")
    ] = 10.0
    expire_s: Annotated[
        float,
        Meta(ge=0, lt=1e12, description="a durable subscription unused for so long ends; 0: never"),
    ] = 0.0
    staged_s: Annotated[
        _Time, Meta(description="rows that are staged, and not committed within it, are dropped")
    ] = 3_600.0
    queries_max: Annotated[
        int,
        Meta(
            ge=1, lt=2**31, description="queries whose last batch is remembered; more are refused"
        ),
    ] = QUERIES_MAX


class SecurityOptions(Struct, frozen=True):
    """Whether connections are encrypted and everybody has to prove who it is, and by what."""

    folder: Annotated[
        str, Meta(description="certificates and roles, as `octopis security init` makes; empty: no")
    ] = ""
    audience: Annotated[
        Annotated[str, Meta(min_length=1)], Meta(description="tokens are for this one, their `aud`")
    ] = "octopis"
    audit: Annotated[
        bool, Meta(description="brokers write down who logs in and what is refused")
    ] = True
    reload_s: Annotated[
        _Time, Meta(description="so often a broker looks whether roles or certificates are new")
    ] = 1.0
    warn_days: Annotated[
        float,
        Meta(ge=0, lt=1e6, description="the end of a certificate is warned of so long before"),
    ] = 30.0


class Metrics(Struct, frozen=True):
    """Where the processes of brokers show their metrics to Prometheus."""

    host: Annotated[str, Meta(description="where they are shown")] = Address().host
    port: Annotated[
        int,
        Meta(ge=0, le=65_535, description="of the first process, the others follow; 0: nowhere"),
    ] = 0

    @property
    def is_on(self) -> bool:
        """Whether metrics are shown at all."""
        return bool(self.port)

    @property
    def address(self) -> Address:
        """Where the first process shows them."""
        return Address(self.host, self.port)


class OverlayConfiguration(Struct, frozen=True, kw_only=True):
    """Everything that the brokers of an overlay must agree on, and where each one listens."""

    scot: SCOT
    routing: RoutingOptions = DEFAULT_ROUTING
    delivery: DeliveryOptions = DeliveryOptions()
    durability: Durability = Durability()
    queues: LinkQueues = LinkQueues()
    client_queues: ClientQueues = ClientQueues()
    shapes: Mapping[tuple[BrokerId, BrokerId], Shape] = {}
    """By direction: from a broker, to its neighbour."""

    addresses: Mapping[BrokerId, Address] = {}
    link_ports: Mapping[BrokerId, int] = {}
    """Where brokers listen for neighbours under security; elsewhere they listen for all at one."""

    limits: Limits = Limits()
    security: SecurityOptions = SecurityOptions()
    metrics: Metrics = Metrics()
    tracing: SpanOptions = SpanOptions()
    insecure: bool = False
    """Whether brokers may listen where other machines reach them although anybody is let in."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if isinstance(settings := getattr(self, name), Struct):
                check(settings, name)
        for (source, target), shape in self.shapes.items():
            self.scot.link_kind(source, target)
            check(shape, f"the link from {source} to {target}: shape")
        if self.insecure and self.is_secure:
            raise InvalidConfiguration(
                "insecure = true and security.folder exclude each other: with security, brokers "
                "may listen anywhere; remove the one that is not meant"
            )
        if self.metrics.is_on and not (self.insecure or self.metrics.address.is_loopback):
            way_out = "" if self.is_secure else ", or say insecure = true"
            raise InvalidConfiguration(
                f"metrics would be shown at {self.metrics.address}, where other machines can read "
                f"them: use metrics.host 127.0.0.1{way_out}"
            )
        if self.tracing.is_on and self.tracing.is_exposed and not self.insecure:
            way_out = "" if self.is_secure else ", or say insecure = true"
            raise InvalidConfiguration(
                f"spans would go to {self.tracing.endpoint} where other machines can read them: "
                f"use https://, a collector at 127.0.0.1{way_out}"
            )
        if self.durability.folder and not self.has_channels:
            raise InvalidConfiguration(
                "what is accepted can be kept on disk only under target routing, with channels: "
                'routing.algorithm = "tnr" and delivery.level = "memory", or no durability.folder'
            )

    @property
    def has_channels(self) -> bool:
        """Whether hosts number what they send each other: under target routing, if so set."""
        is_tnr = self.routing.algorithm is Algorithm.TNR
        return is_tnr and self.delivery.level is not Level.NONE

    @property
    def is_durable(self) -> bool:
        """Whether brokers keep on disk what they accept."""
        return bool(self.durability.folder)

    @property
    def level(self) -> str:
        """How far delivery can be relied on, in one word: neighbours must agree on it."""
        return "disk" if self.is_durable else self.delivery.level.value

    def address(self, broker: BrokerId) -> Address:
        """Return where a broker listens, or raise InvalidConfiguration."""
        address = self.addresses.get(broker, Address())
        if not (self.insecure or self.is_secure or address.is_loopback):
            raise InvalidConfiguration(
                f"{broker} would listen at {address}, where other machines can reach it, and "
                "anybody would be let in: give the overlay security ([security] folder, or "
                "`octopis overlay up --secure DIR`), use 127.0.0.1, or say insecure = true"
            )
        return address

    @property
    def is_secure(self) -> bool:
        """Whether everything is encrypted, and everybody proves who it is."""
        return bool(self.security.folder)

    def link_address(self, broker: BrokerId) -> Address:
        """Return where a broker listens for its neighbours."""
        address = self.address(broker)
        if not self.is_secure:
            return address
        return Address(address.host, self.link_ports.get(broker, 0))

    def at(
        self,
        addresses: Mapping[BrokerId, Address],
        link_ports: Mapping[BrokerId, int] | None = None,
    ) -> "OverlayConfiguration":
        """Return the same overlay with these addresses."""
        places = {**self.addresses, **addresses}
        ports = {**self.link_ports, **(link_ports or {})}
        return structs.replace(self, addresses=places, link_ports=ports)
