"""What a gateway knows of its overlay: where brokers are, and, if it has the document, its plan."""

from pathlib import Path

from msgspec import Struct

from octopis.client.address import parse_addresses
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.explain.layout import column_order
from octopis.gateway.documents import BrokerPlace, LinkPlace, OverlayPlan
from octopis.gateway.security import Security
from octopis.overlay.settings import NamedOverlay, parse_overlay


class OverlayView(Struct, frozen=True):
    """An overlay, as its gateway sees it. Without `overlay`, only addresses are known."""

    name: str
    addresses: dict[str, str]
    """By broker."""

    overlay: NamedOverlay | None = None
    security: Security | None = None
    """How to reach it, if it has security."""

    @property
    def url(self) -> str:
        """Where a client connects: to the first broker that answers."""
        return f"octopis://{','.join(self.addresses.values())}"


def view_of_document(name: str, path: Path) -> OverlayView:
    """Return the overlay of a document, which says where all brokers listen."""
    try:
        overlay = parse_overlay(path.read_text(encoding="utf-8"), str(path))
    except OSError as failure:
        raise OperationFailed(f"cannot read {path}: {failure.strerror}") from failure
    configuration = overlay.configuration
    addresses = {}
    for broker in configuration.scot.brokers:
        address = configuration.address(broker)
        if not address.port:
            raise InvalidConfiguration(f"{path} does not say at which port {broker} listens")
        addresses[broker.short] = str(address)
    return OverlayView(name or overlay.topology.name, addresses, overlay)


def view_of_address(url: str) -> OverlayView:
    """Return what is known of an overlay of which only brokers' addresses are given."""
    addresses = [str(each) for each in parse_addresses(url)]
    return OverlayView(addresses[0], {each: each for each in addresses})


def plan_of(view: OverlayView) -> OverlayPlan | None:
    """Return the overlay's plan; None where its document is not known."""
    if view.overlay is None:
        return None
    configuration = view.overlay.configuration
    scot, routing = configuration.scot, configuration.routing
    links = [
        LinkPlace((source.short, target.short), kind.value)
        for source, target, kind in (*scot.acols, *scot.icols)
    ]
    return OverlayPlan(
        name=view.name,
        algorithm=routing.algorithm.value,
        threshold=routing.congestion_threshold,
        window_ms=routing.window_ms,
        level=configuration.level,
        durable=configuration.is_durable,
        security=view.security is not None,
        regions=list(column_order(scot.acyclic)),
        clusters=list(scot.clusters),
        tree=list(scot.acyclic.edges),
        brokers=[
            BrokerPlace(each.short, each.region, each.cluster, view.addresses[each.short])
            for each in scot.brokers
        ],
        links=links,
    )
