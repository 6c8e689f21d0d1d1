import pytest

from octopis.client.address import Address
from octopis.core.topology import catalogue_names
from octopis.overlay.settings import NamedOverlay, format_overlay, parse_overlay

SHAPED = """
insecure = true
[topology]
catalogue = "figure-3"
[routing]
algorithm = "bid"
[links]
latency_ms = 0.25
[[links.shape]]
source = "b,2"
target = "b,0"
bandwidth_bytes_per_s = 1e6
[brokers."a,1"]
host = "0.0.0.0"
port = 9
"""


def complete(overlay: NamedOverlay) -> NamedOverlay:
    """Return the same overlay with every address spelled out, as it is written."""
    configuration = overlay.configuration
    addresses = {broker: configuration.address(broker) for broker in configuration.scot.brokers}
    return NamedOverlay(overlay.topology, configuration.at(addresses))


@pytest.mark.parametrize(
    "text", [SHAPED, *(f"[topology]\ncatalogue = '{name}'" for name in catalogue_names())]
)
def test_what_is_written_is_read_back_as_the_same_overlay(text: str):
    overlay = parse_overlay(text, "before")
    written = format_overlay(overlay)
    again = parse_overlay(written, "after")
    assert again.configuration == complete(overlay).configuration
    assert again.topology.name == overlay.topology.name
    assert format_overlay(again) == written


def test_addresses_are_spelled_out():
    overlay = parse_overlay("[topology]\ncatalogue = 'figure-3'", "before")
    broker = overlay.configuration.scot.brokers[0]
    placed = NamedOverlay(overlay.topology, overlay.configuration.at({broker: Address(port=7400)}))
    assert '[brokers."a,0"]\nhost = "127.0.0.1"\nport = 7400\n' in format_overlay(placed)
