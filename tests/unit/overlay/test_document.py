import pytest

from octopis.broker.settings import ClientPolicy, LinkPolicy, Shape
from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.errors import InvalidConfiguration, OctopisError
from octopis.overlay.settings import parse_overlay

TOPOLOGY = '[topology]\ncatalogue = "figure-3"\n'
B0, B2 = BrokerId("b", 0), BrokerId("b", 2)


def test_topology_alone_is_enough():
    overlay = parse_overlay(TOPOLOGY, "overlay.toml")
    assert overlay.topology.name == "figure-3"
    assert len(overlay.configuration.scot.brokers) == 18
    assert overlay.configuration.routing.algorithm is Algorithm.DNR
    assert overlay.configuration.address(B2) == Address("127.0.0.1", 0)


def test_every_table_reaches_the_configuration():
    text = f"""
insecure = true
{TOPOLOGY}
[routing]
algorithm = "snr"
congestion_threshold = 20
window_ms = 10
[queues]
capacity = 1000
high_water = 100
policy = "drop_oldest"
[client_queues]
capacity = 50
high_water = 5
policy = "disconnect"
[links]
latency_ms = 2
[[links.shape]]
source = "b,2"
target = "b,0"
bandwidth_bytes_per_s = 20_000
[limits]
drain_s = 1
[brokers."b,2"]
host = "0.0.0.0"
port = 7402
"""
    found = parse_overlay(text, "overlay.toml").configuration
    assert found.routing == RoutingOptions(Algorithm.SNR, congestion_threshold=20, window_ms=10)
    assert (found.queues.capacity, found.queues.high_water) == (1000, 100)
    assert (found.client_queues.capacity, found.client_queues.high_water) == (50, 5)
    assert found.queues.policy is LinkPolicy.DROP_OLDEST
    assert found.client_queues.policy is ClientPolicy.DISCONNECT
    assert found.shapes[B2, B0] == Shape(20_000, 2)
    assert found.shapes[B0, B2] == Shape(None, 2)
    assert found.limits.drain_s == 1
    assert found.address(B2) == Address("0.0.0.0", 7402)  # noqa: S104 - as insecure allows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[routing]\nalgoritm = 'snr'", "unknown key 'routing.algoritm'; did you mean 'algorithm'"),
        ("[rooting]\n", "unknown key 'rooting'; did you mean 'routing'"),
        ('[brokers."b,2"]\nprot = 1', "'brokers.\"b,2\".prot'; did you mean 'port'"),
        ("[[links.shape]]\nsorce = 'b,2'", "'links.shape[0].sorce'; did you mean 'source'"),
        ("[routing]\nalgorithm = 'fast'", "routing.algorithm: invalid enum value 'fast'"),
        ("[routing]\nwindow_ms = 'long'", "routing.window_ms: expected 'float', got 'str'"),
        (
            "[routing]\nwindow_ms = 0",
            "routing.window_ms must be 0.001 or more and below 1e6, not 0",
        ),
        (
            "[routing]\ncongestion_threshold = 0",
            "routing.congestion_threshold must be above 0, not 0",
        ),
        ("[queues]\ncapacity = 5", "queues: a queue's high-water mark must be at least 1"),
        ("[limits]\ndrain_s = 0", "limits.drain_s must be above 0 and below 1e12, not 0"),
        ("[queues]\nhigh_water = 0", "queues.high_water must be 1 or more, not 0"),
        ("[links]\nlatency_ms = -1", "links.latency_ms must be 0 or more, not -1"),
        ("[links]\nbandwidth_bytes_per_s = 0", "links.bandwidth_bytes_per_s must be above 0"),
        ('[brokers."z,2"]\nport = 1', "brokers.\"z,2\": the broker 'z,2' names 'z'"),
        ('[brokers."b,2"]\nport = 65536', "port must be between 0 and 65535, not 65536"),
        ('[brokers."b,2"]\nhost = "0.0.0.0"', "say insecure = true"),
        ('[brokers."b,2"]\n[brokers."B(b, 2)"]', "B(b, 2) is there twice"),
        ("[[links.shape]]\nsource = 'b,2'\ntarget = 'c,1'", "links.shape[0]: "),
        (
            "[[links.shape]]\nsource = 'b,2'\ntarget = 'b,0'\nlatency_ms = nan",
            "links.shape[0].latency_ms must be 0 or more, not nan",
        ),
        ("[routing\n", "overlay.toml is not valid TOML"),
    ],
)
def test_what_makes_no_sense_is_said_with_its_place(text: str, said: str):
    with pytest.raises(InvalidConfiguration) as refused:
        parse_overlay(TOPOLOGY + text, "overlay.toml")
    assert said in str(refused.value)
    assert str(refused.value).startswith("overlay.toml")


def test_document_without_topology_is_refused():
    with pytest.raises(OctopisError, match="topology"):
        parse_overlay("[routing]\n", "overlay.toml")
