import pytest

from octopis.broker.settings import (
    ClientPolicy,
    LinkPolicy,
    OverlayConfiguration,
    QueueBounds,
    Shape,
)
from octopis.client.address import Address
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.errors import InvalidConfiguration, InvalidTopology
from support.overlays import A0, A1, B1, C0, CHAIN

OVERLAY = OverlayConfiguration(scot=CHAIN)


def test_defaults_are_those_of_the_paper_and_a_slow_subscriber_costs_others_nothing():
    assert OVERLAY.routing.algorithm is Algorithm.TNR
    assert (OVERLAY.routing.congestion_threshold, OVERLAY.routing.window_ms) == (10, 50)
    assert OVERLAY.client_queues.policy is ClientPolicy.DROP_OLDEST
    assert OVERLAY.address(A0) == ("127.0.0.1", 0)


def test_policies_have_the_names_of_the_configuration_file():
    assert [each.value for each in LinkPolicy] == ["drop_newest", "drop_oldest", "disconnect"]
    assert [each.value for each in ClientPolicy] == ["pause", "drop_oldest", "disconnect"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_is_where_brokers_may_listen(host: str):
    assert OVERLAY.at({A0: Address(host, 7400)}).address(A0).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "::", "example.org"])  # noqa: S104
def test_listening_elsewhere_needs_insecure(host: str):
    overlay = OVERLAY.at({A0: Address(host, 7400)})
    with pytest.raises(InvalidConfiguration, match=r"B\(a, 0\) would listen at .*insecure = true"):
        overlay.address(A0)
    insecure = OverlayConfiguration(scot=CHAIN, addresses=overlay.addresses, insecure=True)
    assert insecure.address(A0).host == host


def test_addresses_print_as_they_are_written():
    assert str(Address("127.0.0.1", 7400)) == "127.0.0.1:7400"
    assert str(Address("::1", 7400)) == "[::1]:7400"


@pytest.mark.parametrize(
    "bounds",
    [
        {"capacity": 10, "high_water": 11},
        {"high_water": 0},
        {"capacity_bytes": 10, "high_water_bytes": 20},
    ],
)
def test_high_water_mark_above_the_bound_is_refused(bounds: dict):
    with pytest.raises(InvalidConfiguration, match="high-water mark"):
        QueueBounds(**bounds)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Shape(0), "shape.bandwidth_bytes_per_s must be above 0, not 0"),
        (Shape(-1.0), "shape.bandwidth_bytes_per_s must be above 0, not -1.0"),
        (Shape(latency_ms=-1), "shape.latency_ms must be 0 or more, not -1"),
    ],
)
def test_shape_that_makes_no_sense_is_refused(shape: Shape, said: str):
    with pytest.raises(InvalidConfiguration) as refused:
        OverlayConfiguration(scot=CHAIN, shapes={(A0, A1): shape})
    assert str(refused.value) == f"the link from B(a, 0) to B(a, 1): {said}"


def test_only_links_of_the_overlay_can_be_shaped():
    OverlayConfiguration(scot=CHAIN, shapes={(A0, A1): Shape(1_000)})
    for pair in ((A0, B1), (A0, C0)):
        with pytest.raises(InvalidTopology, match="no link joins"):
            OverlayConfiguration(scot=CHAIN, shapes={pair: Shape(1_000)})


def test_window_must_be_a_time():
    with pytest.raises(InvalidConfiguration, match=r"routing\.window_ms must be 0\.001 or more"):
        OverlayConfiguration(scot=CHAIN, routing=RoutingOptions(Algorithm.DNR, window_ms=0))
