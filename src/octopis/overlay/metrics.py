"""Where the processes of an overlay show their metrics: one address each."""

from msgspec import structs

from octopis.broker.settings import OverlayConfiguration
from octopis.client.address import Address
from octopis.errors import InvalidConfiguration
from octopis.overlay.settings import PORT_MAX


def metrics_places(overlay: OverlayConfiguration, processes: int) -> list[Address]:
    """Return where each process shows its metrics, in their order; nothing where none does."""
    host, first = overlay.metrics.address
    if not first:
        return []
    if first + processes - 1 > PORT_MAX:
        raise InvalidConfiguration(
            f"there are not enough ports from {first} on for the metrics of {processes} "
            "processes: begin lower"
        )
    return [Address(host, first + number) for number in range(processes)]


def shown_at(overlay: OverlayConfiguration, port: int) -> OverlayConfiguration:
    """Return the overlay as a process sees it that shows its metrics at this port."""
    metrics = structs.replace(overlay.metrics, port=port)
    return structs.replace(overlay, metrics=metrics)
